"""What a texture fetch gives, in exact rational arithmetic, after the formulas of the CUDA programming guide.

One sample at a time, and nothing shared with the runtime: positions are :class:`fractions.Fraction`, sums whole numbers.
Where the guide is silent the model follows docs/semantics.md ("Textures"), which has what a GPU was seen to do; its words are in
``tests/data/textures_sm_90.npz``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from tests.support.places import DATA
from tests.support.texture_cube import FACES, face_of, neighbours
from tests.support.texture_gradients import cube_level, exponent_of, plain_level

HALF = Fraction(1, 2)
LEAST = Fraction(1, 2**126)  # normal f32
PLACES = {"R": (0, None, None, None), "RG": (0, 1, None, None), "RGBA": (0, 1, 2, 3), "BGRA": (2, 1, 0, 3),
          "A": (None, None, None, 0)}  # fmt: skip


@dataclass(frozen=True)
class Floats:
    """A float format in sums: bits below the leading one of the largest texel and of the result, least exponents, NaN."""

    texel: int
    result: int
    least: int
    nan: int


SINGLE, HALFS, SRGB = Floats(27, 23, -126, 0x7FFFFFFF), Floats(14, 10, -14, 0x7FFFE000), Floats(7, 10, -14, 0)


def f32_bits(value: Fraction | float) -> int:
    """A value rounded to f32, as bits."""
    with np.errstate(over="ignore"):
        return int(np.float32(float(value)).view(np.uint32))


@dataclass
class Model:
    """``levels`` are arrays of raw texels, shaped [layer, z, y, x, component] with components in memory order."""

    levels: list[np.ndarray]
    order: str
    kind: str  # UNORM SNORM UINT SINT FLOAT, as read
    dims: int
    filter: str = "point"
    address: Sequence[str] = ("clamp",) * 3
    normalized: bool = False
    mip_filter: str = "point"
    mip_bias: float = 0.0
    min_level: float = 0.0
    max_level: float = 15.0
    border: Sequence[float] = (0.0,) * 4
    srgb: bool = False
    cube: bool = False
    seamless: bool = False
    samples: int = 1
    line: bool = False  # 1D without layers, which is read as 2D at y = 0
    _extents: list[tuple[int, int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._extents = [(level.shape[3], level.shape[2], level.shape[1]) for level in self.levels]

    # ------------------------------------------------------------ texels

    @property
    def reads_floats(self) -> bool:
        return self.kind in ("UNORM", "SNORM", "FLOAT")

    def raw(self, level: int, layer: int, at: Sequence[int | None], component: int) -> Any:
        """A component as memory or the border has it: an integer of a normalized or integer texel, else a float.

        ``at`` is x, y, z, None where the texel is outside.
        """
        place = PLACES[self.order][component]
        assert place is not None
        if None in at:
            return self.outside(component)
        x, y, z = at
        raw = self.levels[level][layer, z, y, x, place]
        return raw if self.kind == "FLOAT" else int(raw)

    def outside(self, component: int) -> Any:
        """The border colour, cut to what the texels have."""
        value = np.float32(self.border[component])
        if self.kind == "FLOAT":
            return cut_float(value, 10).astype(np.float16) if self.bits_of_texel == 16 else value
        if not self.reads_floats:
            return 0
        within = min(max(Fraction(float(value)), -1 if self.kind == "SNORM" else 0), 1)
        return encoded_byte(float(within)) if self.encoded(component) else normalized(within, self.most)

    @property
    def bits_of_texel(self) -> int:
        return 8 * self.levels[0].dtype.itemsize

    @property
    def most(self) -> int:
        """The normalized integer that stands for 1."""
        return (1 << self.bits_of_texel - (self.kind == "SNORM")) - 1

    def value(self, raw: Any, component: int) -> int:
        """One texel's component as register bits."""
        if not self.reads_floats:
            return int(raw) & 0xFFFFFFFF
        if self.kind == "FLOAT":
            return f32_bits(raw)
        if self.encoded(component):
            return f32_bits(srgb_value(raw))
        return f32_bits(Fraction(max(raw, -self.most), self.most))

    def gathered(self, raw: Any, component: int) -> int:
        """One texel's component of ``tld4``, to which SNORM bytes are 16 bits: their seven repeated."""
        if self.kind != "SNORM" or self.bits_of_texel == 16:
            return self.value(raw, component)
        magnitude = min(abs(raw), 127)
        return f32_bits(Fraction(int(math.copysign(magnitude << 8 | magnitude << 1 | magnitude >> 6, raw)), 32767))

    def shared(self, raws: dict[Any, Any], lost: tuple[int, ...], component: int) -> int:
        """What ``tld4`` reads where three faces meet: 86, 85 and 85 256ths of the others, the opposite texel first."""
        opposite = tuple(1 - side for side in lost)
        others = [(86 if which == opposite else 85, raw) for which, raw in raws.items() if which != lost]
        if self.reads_floats:
            return self.summed([others], component)
        return sum(weight * raw for weight, raw in others) // 256 & 0xFFFFFFFF

    def encoded(self, component: int) -> bool:
        return self.srgb and component < (3 if len(self.order) == 4 else 1)

    def summed(self, planes: Sequence[Sequence[tuple[int, Any]]], component: int) -> int:
        """The bits of a weighted sum of texels, given by planes as (weight in 256ths, raw)."""
        if self.kind == "FLOAT" or self.encoded(component):
            return self.sum_of_floats(planes, component)
        total = sum(weight * raw for plane in planes for weight, raw in plane)
        if self.bits_of_texel == 16:
            sixteen = (total + 128) // 256
        elif self.kind == "UNORM":
            sixteen = (257 * total + 128) // 256
        else:
            sixteen = total + (total // 16 + total // 4096 + 4) // 8
        most = 32767 if self.kind == "SNORM" else 65535
        return f32_bits(Fraction(max(sixteen, -most), most))

    def sum_of_floats(self, planes: Sequence[Sequence[tuple[int, Any]]], component: int) -> int:
        encoded = self.encoded(component)
        format = SRGB if encoded else SINGLE if self.bits_of_texel == 32 else HALFS
        used = [raw for plane in planes for weight, raw in plane if weight]
        if not encoded and not all(map(np.isfinite, used)):
            total = sum(float(raw) for raw in used if not np.isfinite(raw))
            return format.nan if math.isnan(total) else f32_bits(total)
        sums = []
        for plane in planes:
            texels = [(w, Fraction(srgb_value(r)) if encoded else Fraction(float(r)), r) for w, r in plane if w and r]
            if not texels:
                continue
            top = max(srgb_exponent(r) if encoded else max(exponent_of(abs(v)), format.least) for _, v, r in texels)
            unit, meeting = Fraction(2) ** (top - format.texel), 4 * -(-top // 4) - 3 if encoded else top
            sums.append((meeting, sum(w * int(v / unit) for w, v, _ in texels) * unit / 256))
        unit = Fraction(2) ** (max((meeting for meeting, _ in sums), default=0) - format.texel - 8)
        total = sum(int(part / unit) for _, part in sums) * unit
        return rounded(total, format, [raw for raw in used if not encoded])

    # ------------------------------------------------------------ positions

    def mode(self, axis: int) -> str:
        mode = "clamp" if self.cube and self.seamless else self.address[axis]
        return "clamp" if mode in ("wrap", "mirror") and not self.normalized else mode

    @property
    def fractions(self) -> bool:
        """Whether coordinates count extents: at several mip levels they always do."""
        return self.normalized or len(self.levels) > 1

    def position(self, u: Fraction, axis: int, level: int, offset: int) -> Fraction:
        """In texels, as exactly as a coordinate is kept; an offset moves whole texels."""
        extent = self._extents[level][axis]
        grain = 2 ** (21 + (self.fractions and extent > 8192) + (self.fractions and extent > 65536))
        x = Fraction(math.floor(u * grain), grain) if abs(u) >= LEAST else Fraction(0)
        return x * (extent if self.fractions else 1) + offset

    def index(self, i: int, axis: int, level: int) -> int | None:
        """An index by address mode; None outside in border mode."""
        extent = self._extents[level][axis]
        if self.mode(axis) == "wrap":
            return i % extent
        if self.mode(axis) == "mirror":
            return min(i % (2 * extent), 2 * extent - 1 - i % (2 * extent))
        if self.mode(axis) == "border":
            return i if 0 <= i < extent else None
        return min(max(i, 0), extent - 1)

    # ------------------------------------------------------------ one level

    def corners(
        self, u: Sequence[Fraction], level: int, layer: int, offset: Sequence[int], linear: bool, whole: int = 256
    ) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
        """The footprint: (weight in 256ths, layer, indices along the axes, which may lie outside, which corner)."""
        axes: list[list[int]] = []
        parts = [0, 0, 0]
        for axis in range(self.dims):
            x = self.position(u[axis], axis, level, offset[axis])
            if not linear:
                axes.append([math.floor(x)])
                continue
            fixed = math.floor((x - HALF) * 256 + HALF)
            axes.append([fixed // 256, fixed // 256 + 1])
            places = [self.index(i, axis, level) for i in axes[-1]]
            inside = self.cube and self.seamless
            parts[axis] = 0 if places[0] == places[1] and not inside else fixed % 256
        weights = divided(whole, parts, self.dims) if linear else {(0,) * self.dims: whole}
        return [(w, layer, tuple(axes[k][c[k]] for k in range(self.dims)), c) for c, w in weights.items()]

    def placed(self, found: list[Any], level: int, linear: bool) -> list[tuple[int, int, tuple[int | None, ...], Any]]:
        """Corners with x, y, z by address mode, which are None outside, or on the faces of a seamless cube."""
        if self.cube and self.seamless and linear:
            return self.over_edges(found, level)
        return [
            (w, k, (*(self.index(i, axis, level) for axis, i in enumerate(at)), *(0,) * (3 - len(at))), c)
            for w, k, at, c in found
        ]

    def lost(self, found: list[Any], level: int) -> tuple[int, ...] | None:
        """Which corner of a footprint lies over a corner of a seamless cube, where no texel is."""
        n = self._extents[level][0]
        over = [which for _, _, at, which in found if all(not 0 <= i < n for i in at)]
        return over[0] if over and self.cube and self.seamless else None

    def over_edges(self, found: list[Any], level: int) -> list[Any]:
        """Corners on the faces next to this one; where three faces meet, three texels share the fourth's weight."""
        n = self._extents[level][0]
        lost = self.lost(found, level)
        share, left = divmod(next((weight for weight, _, _, which in found if which == lost), 0), 3)
        result = []
        for weight, layer, (i, j), which in found:
            base, face = layer // 6 * 6, layer % 6
            if which == lost:
                weight, i, j = 0, min(max(i, 0), n - 1), min(max(j, 0), n - 1)
            elif lost is not None:
                opposite = all(a != b for a, b in zip(which, lost))
                weight += share + (left == (1 if opposite else 2))
            if not (0 <= i < n and 0 <= j < n):
                face, i, j = neighbours(n)[face, i, j]
            result.append((weight, base + face, (i, j, 0), which))
        return result

    def planes(self, u: Sequence[Fraction], level: int, layer: int, offset: Sequence[int], whole: int) -> list[list[Any]]:
        """The footprint by planes of z, each a list of (weight, layer, x y z)."""
        found: dict[int, list[Any]] = {}
        linear = self.filter == "linear"
        for weight, k, at, which in self.placed(self.corners(u, level, layer, offset, linear, whole), level, linear):
            found.setdefault(which[2] if len(which) > 2 else 0, []).append((weight, k, at))
        return list(found.values())

    # ------------------------------------------------------------ fetches

    def project(self, direction: Sequence[Fraction]) -> tuple[int, list[Fraction]]:
        """The face and the coordinates in it."""
        face = face_of(direction)
        (s, s_sign), (t, t_sign), (m, m_sign) = FACES[face]
        out = direction[m] * m_sign
        if out == 0:
            return face, [HALF, HALF]
        return face, [(s_sign * direction[s] / out + 1) / 2, (t_sign * direction[t] / out + 1) / 2]

    def layer_of(self, layer: int, sample: int, face: int) -> int:
        inner = 6 if self.cube else self.samples
        layers = self.levels[0].shape[0] // inner
        return min(layer, layers - 1) * inner + (face if self.cube else min(sample, inner - 1))

    def lod_levels(self, lod: float | None) -> list[tuple[int, int]]:
        """Levels and their weights in 256ths; None is the least level allowed."""
        asked = 0 if lod is None else in_256ths(lod) + in_256ths(min(self.mip_bias, 15))
        at = max(min(asked, in_256ths(self.max_level)), in_256ths(self.min_level))
        at = min(max(at, 0), (len(self.levels) - 1) * 256)
        if self.mip_filter == "point":
            return [(256, (at + 128) // 256)]
        found = [(256 - at % 256, at // 256)]
        return found if at % 256 == 0 else [*found, (at % 256, at // 256 + 1)]

    def gradient_lod(self, along: Sequence[Sequence[float]], coordinates: Sequence[float]) -> float:
        """The level that follows from gradients, at coordinates."""
        steps, position = [[np.float32(value) for value in vector] for vector in along], [np.float32(u) for u in coordinates]
        if self.cube:
            return cube_level(steps, self._extents[0][0], position)
        return plain_level(steps, self._extents[0], position if self.dims == 3 else None)

    def fetch(
        self,
        coordinates: Sequence[float],
        layer: int = 0,
        lod: float | None = None,
        along: Sequence[Sequence[float]] | None = None,
        offset: Sequence[int] = (0, 0, 0),
    ) -> list[int]:
        """tex with float coordinates: the bits of R, G, B and A."""
        if self.line:
            flat = [[*vector, 0.0] for vector in along] if along is not None else None
            return replace(self, line=False, dims=2).fetch([*coordinates, 0.0], layer, lod, flat, (offset[0], 0, 0))
        u = [Fraction(float(value)) for value in coordinates]
        face = 0
        if along is not None:
            lod = self.gradient_lod(along, coordinates)
        if self.cube:
            face, u = self.project(u)
        layer = self.layer_of(layer, 0, face)
        planes = [(level, plane) for w, level in self.lod_levels(lod) for plane in self.planes(u, level, layer, offset, w)]
        return [self.component(planes, c) for c in range(4)]

    def component(self, planes: Sequence[tuple[int, Sequence[Any]]], c: int) -> int:
        if PLACES[self.order][c] is None:
            return 0
        raws = [[(w, self.raw(level, k, at, c)) for w, k, at in plane] for level, plane in planes]
        if self.filter == "point" and self.mip_filter == "point":
            return self.value(raws[0][0][1], c)
        return self.summed(raws, c)

    def fetch_texel(
        self, at: Sequence[int], layer: int = 0, sample: int = 0, lod: int | None = None, offset: Sequence[int] = (0, 0, 0)
    ) -> list[int]:
        """tex with integer coordinates; ``lod`` is None without a level."""
        level = lod or 0
        point = [at[axis] + offset[axis] for axis in range(self.dims)]
        extents = self._extents[min(max(level, 0), len(self.levels) - 1)]
        clamped = [min(max(i, 0), extents[axis] - 1) for axis, i in enumerate(point)]
        layers = self.levels[0].shape[0] // (6 if self.cube else self.samples)
        if not 0 <= level < len(self.levels) or (lod is None and (clamped != point or layer >= layers)):
            return [0] * 4
        layer = self.layer_of(layer, sample, 0)
        places = PLACES[self.order]
        texel = (*clamped, 0, 0)[:3]
        return [0 if places[c] is None else self.value(self.raw(level, layer, texel, c), c) for c in range(4)]

    def gather(
        self, coordinates: Sequence[float], component: int, layer: int = 0, offset: Sequence[int] = (0, 0, 0)
    ) -> list[int]:
        """tld4: the footprint of level 0, counter-clockwise from the lower left (i, j+1)."""
        u = [Fraction(float(value)) for value in coordinates]
        face = 0
        if self.cube:
            face, u = self.project(u)
        if PLACES[self.order][component] is None:
            return [0] * 4
        corners = self.corners(u, 0, self.layer_of(layer, 0, face), offset, True)
        raws = {which: self.raw(0, k, at, component) for _, k, at, which in self.placed(corners, 0, True)}
        found = {which: self.gathered(raw, component) for which, raw in raws.items()}
        lost = self.lost(corners, 0)
        if lost is not None:
            found[lost] = self.shared(raws, lost, component)
        return [found[which] for which in ((0, 1), (1, 1), (1, 0), (0, 0))]


def divided(whole: int, parts: Sequence[int], dims: int) -> dict[tuple[int, ...], int]:
    """The weights of corners: a weight is divided along z, then x, then y; halves go up but in two cases."""
    result = {}
    deep = (whole * parts[2] + 127) // 256
    for z, plane in ((0, whole - deep), (1, deep)) if dims > 2 else ((0, whole),):
        right = (plane * parts[0] + 128) // 256
        for x, column in ((0, plane - right), (1, right)):
            up = (column * parts[1] + (128 if x else 127)) // 256
            for y, weight in ((0, column - up), (1, up)) if dims > 1 else ((0, column),):
                result[(x, y, z)[:dims]] = weight
    return result


def in_256ths(level: float) -> int:
    """A level, cut; NaN counts as 0."""
    return 0 if math.isnan(level) else int(Fraction(min(max(level, -2048.0), 2048.0)) * 256)


def rounded(value: Fraction, format: Floats, texels: Sequence[Any]) -> int:
    """The bits of a sum, rounded once, ties away from zero; f32 has no subnormal sums, and only zeros of one sign keep it."""
    if value == 0 or (format is SINGLE and abs(value) < LEAST):
        return 0x80000000 if texels and all(np.signbit(texel) and texel == 0 for texel in texels) else 0
    unit = Fraction(2) ** (max(exponent_of(abs(value)), format.least) - format.result)
    magnitude = math.floor(abs(value) / unit + HALF) * unit
    return f32_bits(magnitude if value > 0 else -magnitude)


def normalized(value: Fraction, most: int) -> int:
    """A number from -1 to 1 as hardware stores it: of its fraction bits 16 or 22 count, and halves go toward zero."""
    grain = 2 ** (16 if most < 256 else 22)
    magnitude = math.ceil(Fraction(math.floor(abs(value) * grain), grain) * most - HALF)
    return magnitude if value > 0 else -magnitude


def encoded_byte(value: float) -> int:
    """A linear number from 0 to 1 as the nearest sRGB byte."""
    return round(255 * (12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055))


def cut_float(value: np.float32, bits: int) -> np.float32:
    """An f32 with so many bits behind the leading one."""
    return (value.view(np.uint32) & np.uint32(0x1_0000_0000 - (1 << 23 - bits))).view(np.float32)


@cache
def _srgb() -> tuple[list[float], list[int]]:
    with np.load(DATA / "textures_sm_90.npz") as data:
        return data["srgb_values"].astype(float).tolist(), data["srgb_exponents"].tolist()


def srgb_value(raw: Any) -> float:
    """A byte as hardware decodes it; a border is a float already."""
    return _srgb()[0][raw] if isinstance(raw, int) else float(raw)


def srgb_exponent(raw: Any) -> int:
    """The exponent that it has in sums."""
    return _srgb()[1][raw] if isinstance(raw, int) else exponent_of(Fraction(float(raw)))
