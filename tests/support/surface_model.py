"""The surface rules, written down a second time in plain Python, as an oracle for the C runtime."""

from __future__ import annotations

from dataclasses import dataclass

HAS_Y = ("2d", "3d", "a2d", "cube", "acube")
ARRAYS = ("a1d", "a2d", "cube", "acube")

# Outcomes of an access without an address.
TRAP, MISALIGNED, NONE = "trap", "misaligned", "none"


def align(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass
class Level:
    width: int
    height: int
    depth: int
    bh: int
    bd: int
    pitch: int
    slice_stride: int
    offset: int
    size: int


@dataclass
class ModelSurface:
    """Extents and layout of a surface; lacking extents are 1."""

    geometry: str
    elem: int
    width: int
    height: int = 1
    depth: int = 1
    layers: int = 1
    layout: str = "pitch"
    pitch: int = 0
    bh: int = 0
    bd: int = 0
    gob_order: str = "swizzled"
    n_levels: int = 1

    def __post_init__(self) -> None:
        self.levels: list[Level] = []
        end = 0
        for index in range(self.n_levels):
            level = self._level(index, end)
            self.levels.append(level)
            end = level.offset + level.size
        if self.layout == "block_linear":
            end = align(end, 512 << (self.levels[0].bh + self.levels[0].bd))
        self.layer_stride = end
        self.total = end * self.layers

    def _level(self, index: int, offset: int) -> Level:
        width, height, depth = (max(1, extent >> index) for extent in (self.width, self.height, self.depth))
        row = width * self.elem
        if self.layout == "block_linear":
            bh, bd = self.bh, self.bd
            while bh > 0 and 8 << (bh - 1) >= height:
                bh -= 1
            while bd > 0 and 1 << (bd - 1) >= depth:
                bd -= 1
            blocks = -(-row // 64) * -(-height // (8 << bh)) * -(-depth // (1 << bd))
            return Level(width, height, depth, bh, bd, 0, 0, offset, blocks * (512 << (bh + bd)))
        if self.layout == "linear":
            pitch = row
        else:
            pitch = self.pitch if self.pitch and index == 0 else align(row, 16)
        return Level(width, height, depth, 0, 0, pitch, pitch * height, offset, pitch * height * depth)

    def offset(self, x: int, y: int, z: int, layer: int, level: int = 0) -> int:
        at = self.levels[level]
        base = at.offset + layer * self.layer_stride
        if self.layout != "block_linear":
            return base + z * at.slice_stride + y * at.pitch + x
        bx, by = -(-at.width * self.elem // 64), -(-at.height // (8 << at.bh))
        block = ((z // (1 << at.bd)) * by + y // (8 << at.bh)) * bx + x // 64
        gob = ((z % (1 << at.bd)) << at.bh) + (y // 8) % (1 << at.bh)
        return base + block * (512 << (at.bh + at.bd)) + gob * 512 + self._in_gob(x % 64, y % 8)

    def _in_gob(self, x: int, y: int) -> int:
        if self.gob_order == "linear":
            return y * 64 + x
        bits = [x & 1, x >> 1 & 1, x >> 2 & 1, x >> 3 & 1, y & 1, x >> 4 & 1, y >> 1 & 1, y >> 2 & 1, x >> 5 & 1]
        return sum(bit << place for place, bit in enumerate(bits))

    def resolve(
        self, mode: str, n: int, x: int, y: int, z: int, layer: int, clamp: str, policy: str = "fault", level: int = 0,
        edge: str = "reject", layer_bits: int = 32,
    ) -> int | str:  # fmt: skip
        """The byte offset of an access, or an outcome."""
        if mode == "texel":
            n = self.elem
        if mode != "byte":
            x *= n
        if x % n:
            if policy == "fault":
                return MISALIGNED
            x -= x % n
        outside = TRAP if clamp == "trap" else NONE
        if level >= self.n_levels:
            return outside
        at = self.levels[level]
        y = y if self.geometry in HAS_Y else 0
        z = z if self.geometry == "3d" else 0
        layer = layer % (1 << layer_bits) if self.geometry in ARRAYS else 0
        row = at.width * self.elem
        stored = {"linear": row, "pitch": at.pitch, "block_linear": align(row, 64)}[self.layout]
        fits = 0 <= x < row and x + n <= stored if edge == "allow" else x >= 0 and x + n <= row
        if fits and 0 <= y < at.height and 0 <= z < at.depth and layer < self.layers:
            return self.offset(x, y, z, layer, level)
        if clamp != "clamp":
            return outside
        last = (row - 1) // n * n
        if edge != "allow" or last + n > stored:
            if row < n:
                return NONE
            last = (row // n - 1) * n
        return self.offset(
            min(max(x, 0), last), min(max(y, 0), at.height - 1), min(max(z, 0), at.depth - 1),
            min(layer, self.layers - 1), level,
        )  # fmt: skip
