"""What a texture fetch gives, in exact rational arithmetic, after the formulas of the CUDA programming guide.

One sample at a time, and nothing shared with the runtime: positions, fractions and sums are :class:`fractions.Fraction`.
Where the guide is silent the model follows docs/semantics.md ("Textures").
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

HALF = Fraction(1, 2)
# GL's table of cube faces: for each face the axis and sign of s, t and of the way out.
FACES = (
    ((2, -1), (1, -1), (0, 1)), ((2, 1), (1, -1), (0, -1)), ((0, 1), (2, 1), (1, 1)),
    ((0, 1), (2, -1), (1, -1)), ((0, 1), (1, -1), (2, 1)), ((0, -1), (1, -1), (2, -1)),
)  # fmt: skip
PLACES = {"R": (0, None, None, None), "RG": (0, 1, None, None), "RGBA": (0, 1, 2, 3), "BGRA": (2, 1, 0, 3),
          "A": (None, None, None, 0)}  # fmt: skip


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
    _extents: list[tuple[int, int, int]] = field(init=False)

    def __post_init__(self) -> None:
        self._extents = [(level.shape[3], level.shape[2], level.shape[1]) for level in self.levels]

    # ------------------------------------------------------------ texels

    @property
    def reads_floats(self) -> bool:
        return self.kind in ("UNORM", "SNORM", "FLOAT")

    def absent(self, component: int) -> Fraction:
        return Fraction(int(component == 3))

    def texel(self, level: int, layer: int, at: Sequence[int], component: int) -> Fraction:
        """The value of a texel's component; ``at`` is x, y, z."""
        place = PLACES[self.order][component]
        if place is None:
            return self.absent(component)
        raw = self.levels[level][layer, at[2], at[1], at[0], place]
        if self.kind == "FLOAT":
            return Fraction(float(raw))
        bits = 8 * raw.dtype.itemsize
        if self.kind == "UNORM":
            value = Fraction(int(raw), (1 << bits) - 1)
            return Fraction(linear_of_srgb(float(value))) if self.srgb and component < 3 else value
        if self.kind == "SNORM":
            most = (1 << (bits - 1)) - 1
            return Fraction(max(int(raw), -most), most)
        return Fraction(int(raw))

    def outside(self, component: int) -> Fraction:
        """What a texel outside gives in border mode."""
        if PLACES[self.order][component] is None:
            return self.absent(component)
        return Fraction(float(np.float32(self.border[component]))) if self.reads_floats else Fraction(0)

    def bits(self, value: Fraction) -> int:
        return f32_bits(value) if self.reads_floats else int(value) & 0xFFFFFFFF

    # ------------------------------------------------------------ positions

    def mode(self, axis: int) -> str:
        mode = "clamp" if self.cube else self.address[axis]
        return "clamp" if mode in ("wrap", "mirror") and not self.normalized else mode

    def position(self, u: Fraction, axis: int, level: int, offset: int) -> Fraction:
        """In texels, folded as the guide's address modes say; an offset moves whole texels."""
        extent = self._extents[level][axis]
        x = u + Fraction(offset, extent) if self.normalized else u + offset
        if self.mode(axis) == "wrap":
            x -= math.floor(x)
        elif self.mode(axis) == "mirror":
            whole = math.floor(x)
            x = x - whole if whole % 2 == 0 else 1 - (x - whole)
        return x * extent if self.normalized else x

    def index(self, i: int, axis: int, level: int) -> int | None:
        """An index by address mode; None outside in border mode."""
        extent = self._extents[level][axis]
        if self.mode(axis) == "wrap":
            return i % extent
        if self.mode(axis) == "border":
            return i if 0 <= i < extent else None
        return min(max(i, 0), extent - 1)

    # ------------------------------------------------------------ one level

    def corners(
        self, u: Sequence[Fraction], level: int, layer: int, offset: Sequence[int], linear: bool, rounded: bool = True
    ) -> list[tuple[Fraction, int, tuple[int | None, ...], tuple[int, ...]]]:
        """The footprint: (weight, layer, x y z, which corner)."""
        axes = []
        for axis in range(self.dims):
            x = self.position(u[axis], axis, level, offset[axis])
            if not linear:
                axes.append([(Fraction(1), math.floor(x), 0)])
                continue
            x -= HALF
            first = math.floor(x)
            part = Fraction(math.floor((x - first) * 256 + HALF), 256) if rounded else HALF
            axes.append([(1 - part, first, 0), (part, first + 1, 1)])
        found = []
        for corner in itertools.product(*axes):
            weight = math.prod((item[0] for item in corner), start=Fraction(1))
            at = tuple(item[1] for item in corner)
            found.append((weight, layer, at, tuple(item[2] for item in corner)))
        if self.cube and self.seamless and linear:
            return self.over_edges(found, level)
        return [
            (w, k, (*(self.index(i, axis, level) for axis, i in enumerate(at)), *(0,) * (3 - len(at))), c)
            for w, k, at, c in found
        ]

    def over_edges(self, found: list[Any], level: int) -> list[Any]:
        """Corners on the faces next to this one; where three faces meet, three texels share the fourth's weight."""
        n = self._extents[level][0]
        result, missing = [], Fraction(0)
        for weight, layer, (i, j), which in found:
            base, face = layer // 6 * 6, layer % 6
            x_out, y_out = not 0 <= i < n, not 0 <= j < n
            if x_out and y_out:
                missing = weight
                result.append((Fraction(0), layer, (min(max(i, 0), n - 1), min(max(j, 0), n - 1), 0), which))
                continue
            if x_out or y_out:
                face, i, j = neighbours(n)[face, i, j]
            result.append((weight, base + face, (i, j, 0), which))
        if not any(not 0 <= at[0] < n and not 0 <= at[1] < n for _, _, at, _ in found):
            return result
        apart = [not 0 <= at[0] < n and not 0 <= at[1] < n for _, _, at, _ in found]
        return [(w if out else w + missing / 3, k, at, c) for (w, k, at, c), out in zip(result, apart)]

    def level_values(self, u: Sequence[Fraction], level: int, layer: int, offset: Sequence[int]) -> list[Fraction]:
        """R, G, B and A of one level."""
        totals = [Fraction(0)] * 4
        for weight, k, at, _ in self.corners(u, level, layer, offset, self.filter == "linear"):
            for c in range(4):
                value = self.outside(c) if None in at else self.texel(level, k, at, c)  # type: ignore[arg-type]
                totals[c] += weight * value
        return totals

    # ------------------------------------------------------------ fetches

    def project(self, direction: Sequence[Fraction]) -> tuple[int, list[Fraction]]:
        """The face and the coordinates in it."""
        x, y, z = direction
        if abs(z) >= max(abs(x), abs(y)):
            axis = 2
        else:
            axis = 1 if abs(y) >= abs(x) else 0
        negative = direction[axis] < 0
        face = 2 * axis + negative
        (s, s_sign), (t, t_sign), (m, m_sign) = FACES[face]
        out = direction[m] * m_sign
        if out == 0:
            return face, [HALF, HALF]
        return face, [(s_sign * direction[s] / out + 1) / 2, (t_sign * direction[t] / out + 1) / 2]

    def layer_of(self, layer: int, sample: int, face: int) -> int:
        inner = 6 if self.cube else self.samples
        layers = self.levels[0].shape[0] // inner
        return min(layer, layers - 1) * inner + (face if self.cube else min(sample, inner - 1))

    def lod_levels(self, lod: float | None) -> list[tuple[Fraction, int]]:
        """Levels and their weights; None is the least level allowed."""
        last = len(self.levels) - 1
        most = min(self.max_level, last)
        least = min(max(self.min_level, 0.0), most)
        at = least if lod is None or math.isnan(lod) else min(max(lod + self.mip_bias, least), most)
        if self.mip_filter == "point":
            return [(Fraction(1), math.floor(Fraction(at) + HALF))]
        fixed = math.floor(Fraction(at) * 256 + HALF)
        part = Fraction(fixed % 256, 256)
        found = [(1 - part, fixed // 256)]
        return found if part == 0 else [*found, (part, fixed // 256 + 1)]

    def gradient_lod(self, along: Sequence[Sequence[float]], direction: Sequence[Fraction] | None) -> float:
        """log2 of the longer gradient, in texels of level 0."""
        longest = 0.0
        for slope in along:
            steps = [float(value) for value in slope]
            if direction is not None:
                face, _ = self.project(direction)
                (s, s_sign), (t, t_sign), (m, m_sign) = FACES[face]
                out, d_out = float(direction[m]) * m_sign, steps[m] * m_sign
                steps = [
                    0.5 * (sign * steps[axis] * out - sign * float(direction[axis]) * d_out) / out**2
                    for axis, sign in ((s, s_sign), (t, t_sign))
                ]
            scaled = [step * (self._extents[0][axis] if self.normalized else 1) for axis, step in enumerate(steps[: self.dims])]
            longest = max(longest, sum(value**2 for value in scaled))
        return 0.5 * math.log2(longest) if longest > 0 else -math.inf

    def fetch(
        self,
        coordinates: Sequence[float],
        layer: int = 0,
        lod: float | None = None,
        along: Sequence[Sequence[float]] | None = None,
        offset: Sequence[int] = (0, 0, 0),
    ) -> list[int]:
        """tex with float coordinates: the bits of R, G, B and A."""
        u = [Fraction(float(value)) for value in coordinates]
        face = 0
        if along is not None:
            lod = self.gradient_lod(along, u if self.cube else None)
        if self.cube:
            face, u = self.project(u)
        layer = self.layer_of(layer, 0, face)
        levels = [(w, self.level_values(u, level, layer, offset)) for w, level in self.lod_levels(lod)]
        return [self.bits(sum((w * values[c] for w, values in levels), Fraction(0))) for c in range(4)]

    def fetch_texel(
        self, at: Sequence[int], layer: int = 0, sample: int = 0, lod: int = 0, offset: Sequence[int] = (0, 0, 0)
    ) -> list[int]:
        """tex with integer coordinates."""
        level = min(max(lod, 0), len(self.levels) - 1)
        point = [at[axis] + offset[axis] for axis in range(self.dims)]
        if any(not 0 <= i < self._extents[level][axis] for axis, i in enumerate(point)):
            return [0] * 4
        layer = self.layer_of(layer, sample, 0)
        return [self.bits(self.texel(level, layer, (*point, 0, 0)[:3], c)) for c in range(4)]

    def gather(
        self, coordinates: Sequence[float], component: int, layer: int = 0, offset: Sequence[int] = (0, 0, 0)
    ) -> list[int]:
        """tld4: the footprint counter-clockwise from the lower left (i, j+1)."""
        u = [Fraction(float(value)) for value in coordinates]
        face = 0
        if self.cube:
            face, u = self.project(u)
        ((_, level),) = self.lod_levels(None)[:1]
        found = {}
        for _, k, at, which in self.corners(u, level, self.layer_of(layer, 0, face), offset, True, rounded=False):
            value = self.outside(component) if None in at else self.texel(level, k, at, component)  # type: ignore[arg-type]
            found[which] = self.bits(value)
        return [found[which] for which in ((0, 1), (1, 1), (1, 0), (0, 0))]


def linear_of_srgb(c: float) -> float:
    """IEC 61966-2-1."""
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


@cache
def neighbours(n: int) -> dict[tuple[int, int, int], tuple[int, int, int]]:
    """(face, i, j) one step over an edge: the texel beyond, found as the other owner of the same piece of edge."""
    owners: dict[tuple[int, ...], list[tuple[tuple[int, int, int], tuple[int, int, int]]]] = {}
    for face, k in itertools.product(range(6), range(n)):
        for i, j, beyond, s, t in (
            (0, k, (face, -1, k), -n, 2 * k + 1 - n), (n - 1, k, (face, n, k), n, 2 * k + 1 - n),
            (k, 0, (face, k, -1), 2 * k + 1 - n, -n), (k, n - 1, (face, k, n), 2 * k + 1 - n, n),
        ):  # fmt: skip
            point = [0, 0, 0]
            for value, (axis, sign) in zip((s, t, n), FACES[face]):
                point[axis] = value * sign
            owners.setdefault(tuple(point), []).append(((face, i, j), beyond))
    result = {}
    for (texel, beyond), (other, other_beyond) in owners.values():
        result[beyond], result[other_beyond] = other, texel
    return result
