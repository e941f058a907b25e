"""Geometries: what the manual says of coordinate tuples, and that the runtime numbers each."""

from __future__ import annotations

import pytest

from ptxemu._runtime import lib
from ptxemu.ir.geometry import GEOMETRIES, SURFACES

# PTX ISA, "tex" and "suld": elements of a tuple, axes, the places of x, of the layer and of the sample.
MANUAL = {
    "1d": (1, 1, 0, None, None), "2d": (2, 2, 0, None, None), "3d": (3, 3, 0, None, None), "a1d": (2, 1, 1, 0, None),
    "a2d": (3, 2, 1, 0, None), "cube": (3, 3, 0, None, None), "acube": (4, 3, 1, 0, None), "2dms": (3, 2, 1, None, 0),
    "a2dms": (4, 2, 2, 1, 0), "1d_buffer": (1, 1, 0, None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", MANUAL)
def test_tuples_of_coordinates(name: str) -> None:
    one = GEOMETRIES[name]
    assert (len(one.coordinates), one.axes, one.place("x"), one.place("l"), one.place("s")) == MANUAL[name]
    assert one.places() == list(range(len(one.coordinates)))[-one.axes :]


def test_every_geometry_is_in_the_manual_and_has_a_number() -> None:
    assert set(GEOMETRIES) == set(MANUAL)
    numbers = {getattr(lib, one.constant) for one in GEOMETRIES.values()}
    assert len(numbers) == len(GEOMETRIES)
    assert set(GEOMETRIES) - set(SURFACES) == {"2dms", "a2dms"}
