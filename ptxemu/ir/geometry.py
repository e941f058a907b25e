"""The geometries of surfaces and textures: their coordinates, and the extents of arrays that hold their texels."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

AXES, LAYER, SAMPLE = "xyz", "l", "s"


class Geometry(Struct, frozen=True):
    """``coordinates`` are the elements of a coordinate tuple of PTX in order: axes, ``l`` the layer, ``s`` the sample.

    ``extents`` are the axes of an array of texels, outermost first, without one for the components.
    """

    name: str
    coordinates: str
    extents: tuple[str, ...]

    @property
    def axes(self) -> int:
        """How many axes there are, layers and samples apart."""
        return sum(letter in AXES for letter in self.coordinates)

    @property
    def indexed(self) -> bool:
        """Whether the first coordinate is a layer."""
        return self.coordinates[0] == LAYER

    @property
    def multisampled(self) -> bool:
        return SAMPLE in self.coordinates

    @property
    def constant(self) -> str:
        """The name of the runtime's number for it."""
        return f"PE_GEOM_{self.name.upper()}"

    def place(self, letter: str) -> int | None:
        """Where an axis, the layer or the sample stands in a tuple of PTX, None if there is none."""
        return self.coordinates.index(letter) if letter in self.coordinates else None

    def places(self) -> list[int]:
        """Where the axes stand in a tuple of PTX."""
        return [place for place, letter in enumerate(self.coordinates) if letter in AXES]


GEOMETRIES: dict[str, Geometry] = {
    name: Geometry(name, coordinates, tuple(extents.split()))
    for name, coordinates, extents in (
        ("1d", "x", "width"),
        ("1d_buffer", "x", "width"),
        ("2d", "xy", "height width"),
        ("3d", "xyz", "depth height width"),
        ("a1d", "lx", "layers width"),
        ("a2d", "lxy", "layers height width"),
        ("cube", "xyz", "layers height width"),
        ("acube", "lxyz", "layers height width"),
        ("2dms", "sxy", "samples height width"),
        ("a2dms", "slxy", "layers samples height width"),
    )
}
SURFACES: dict[str, Geometry] = {name: one for name, one in GEOMETRIES.items() if not one.multisampled}
"""Those that surfaces can have; textures can have all."""


def counts_texels(mods: Mapping[str, str]) -> bool:
    """Whether a texture instruction's coordinates are indices; beside gradients integers are the bits of f32."""
    return mods["ctype"] == "s32" and mods.get("mode") != "grad"
