"""Texels of a warp that lie side by side in a few rows of one surface: vector instructions after one test.

The handle is uniform and the coordinates form patterns, so that the lanes are one, two or four groups of neighbours.  What a
test needs of the surface is its view (``pe_surface_view``); where the test fails, the runtime does the access lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.geometry import AXES, GEOMETRIES, LAYER
from ptxemu.ir.ops import Op, Operand, items_of
from ptxemu.ir.types import B32
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.site import Value, site_literal, site_type
from ptxemu.lower.memory import ahead, surface_view
from ptxemu.lower.memory.surface_view import PLAIN, STRIDES

GROUPS = (1, 2, 4)


class Coordinate(Struct, frozen=True):
    """A pattern: ``base``, a scalar i32, plus the offsets of its shape."""

    base: str
    shape: Shape


class Rows(Struct, frozen=True):
    """The texels of one instruction: ``bytes`` a lane, in ``groups`` rows of neighbours; coordinates by their letters."""

    handle: str
    view: str
    groups: int
    bytes: int
    coordinates: dict[str, Coordinate]

    def first(self, group: int) -> int:
        """The first lane of a group."""
        return group * LANES // self.groups


def rows_of(ctx: Context, op: Op, handle: str | None, size: int) -> Rows | None:
    """The rows of an access of ``size`` bytes a lane, or None: it goes to the runtime."""
    geometry = op.mods["geom"]
    if handle is None or ctx.unit.observed == "all" or geometry not in PLAIN:
        return None
    items = items_of(op["coordinates"])
    shapes: dict[str, tuple[Operand, Shape]] = {}
    for letter in (*AXES, LAYER):
        place = GEOMETRIES[geometry].place(letter)
        if place is None:
            continue
        shape = ctx.shape(items[place])
        if shape is None or shape.widenings:
            return None
        shapes[letter] = items[place], shape
    groups = next((groups for groups in GROUPS if _grouped({key: shape for key, (_, shape) in shapes.items()}, groups, size)), 0)
    if not groups:
        return None
    coordinates = {letter: Coordinate(ctx.scalar_of(item, B32), shape) for letter, (item, shape) in shapes.items()}
    return Rows(handle, surface_view.address(ctx, geometry, handle), groups, size, coordinates)


def _grouped(shapes: dict[str, Shape], groups: int, size: int) -> bool:
    """Whether x steps by ``size`` in each of so many groups of lanes, and nothing else does, and all x are aligned alike."""
    width = LANES // groups
    for letter, shape in shapes.items():
        step = size if letter == "x" else 0
        for first in range(0, LANES, width):
            start = shape.offsets[first]
            if shape.offsets[first : first + width] != tuple(start + step * lane for lane in range(width)):
                return False
    starts = shapes["x"].offsets[::width]
    return all((start - starts[0]) % size == 0 for start in starts)


# ---------------------------------------------------------------- the test


def inside(ctx: Context, rows: Rows) -> str:
    """i1: all lanes, those that are off included, are inside the surface and aligned."""
    tests = [_inside(ctx, rows, letter) for letter in rows.coordinates]
    x = rows.coordinates["x"]
    if 1 << min(x.shape.zeros, 31) < rows.bytes or x.shape.offsets[0] % rows.bytes:
        tests.append(ctx.kept(f"aligned {rows.bytes} {x.base} {x.shape.offsets[0]}", lambda: _aligned(ctx, rows, x)))
    good = tests[0]
    for test in tests[1:]:
        good = ctx.scalar.bin("and", "i1", good, test)
    return good


def _inside(ctx: Context, rows: Rows, letter: str) -> str:
    at = rows.coordinates[letter]
    low, high = at.shape.spread
    room = high - low + (rows.bytes if letter == "x" else 1)

    def test() -> str:
        least = _wide(ctx, at, low)
        end = ctx.scalar.bin("add", "i64", least, str(room))
        return ctx.scalar.icmp("ule", "i64", end, surface_view.field(ctx, rows.view, surface_view.EXTENTS[letter]))

    return ctx.kept(f"inside {rows.view} {letter} {at.base} {low} {room}", test)


def _aligned(ctx: Context, rows: Rows, x: Coordinate) -> str:
    rest = ctx.scalar.bin("and", "i64", _wide(ctx, x, x.shape.offsets[0]), str(rows.bytes - 1))
    return ctx.scalar.icmp("eq", "i64", rest, "0")


def _wide(ctx: Context, at: Coordinate, offset: int) -> str:
    """A lane's coordinate as an i64, unsigned: a negative one is outside of every surface."""

    def widen() -> str:
        value = ctx.scalar.bin("add", "i32", at.base, str(offset)) if offset else at.base
        return ctx.scalar.cast("zext", "i32", value, "i64")

    return ctx.kept(f"wide {at.base} {offset}", widen)


# ---------------------------------------------------------------- addresses


def pointers(ctx: Context, rows: Rows) -> list[str]:
    """Where each group begins if all lanes are inside; mere numbers else."""
    found = []
    for group in range(rows.groups):
        lane = rows.first(group)
        x = rows.coordinates["x"]
        row = _row(ctx, rows, lane)
        column = _wide(ctx, x, x.shape.offsets[lane])
        found.append(ctx.inst(f"getelementptr i8, ptr {row}, i64 {column}"))
        if rows.groups == 1:
            ahead.prefetch(ctx, row, found[-1], rows.bytes * LANES)
    return found


def _row(ctx: Context, rows: Rows, lane: int) -> str:
    """The row of a lane."""
    steps = [(letter, at, at.shape.offsets[lane]) for letter, at in rows.coordinates.items() if letter != "x"]

    def place() -> str:
        address = surface_view.field(ctx, rows.view, "base")
        for letter, at, offset in steps:
            step = ctx.scalar.bin("mul", "i64", _wide(ctx, at, offset), surface_view.field(ctx, rows.view, STRIDES[letter]))
            address = ctx.scalar.bin("add", "i64", address, step)
        return ctx.inst(f"inttoptr i64 {address} to ptr")

    return ctx.kept(f"row {rows.view} " + " ".join(f"{at.base} {offset}" for _, at, offset in steps), place)


# ---------------------------------------------------------------- the runtime


def parts(ctx: Context, rows: Rows, data: str) -> list[str]:
    """Where each group begins in what the runtime has moved."""
    width = rows.bytes * LANES // rows.groups
    return [ctx.inst(f"getelementptr i8, ptr {data}, i64 {group * width}") if group else data for group in range(rows.groups)]


def call(ctx: Context, op: Op, rows: Rows, site: str, data: str) -> None:
    """The access by the runtime, whatever the coordinates."""
    given = [rows.coordinates.get(letter) for letter in (*AXES, LAYER)]
    bases = [("i32", at.base if at else "0") for at in given]
    ctx.call(
        "void", "pe_surface_lanes", ("ptr", "%w"), ("ptr", site), ("i32", ctx.bits_of(ctx.mask_of(op))),
        ("i64", rows.handle), ("ptr", rows.view), ("ptr", _pattern(ctx, rows, given)), *bases, ("ptr", data),
    )  # fmt: skip


def _pattern(ctx: Context, rows: Rows, given: Sequence[Coordinate | None]) -> str:
    """The address of a ``pe_surface_pattern``."""
    return ctx.constant(_pattern_text(rows.groups, tuple(at.shape.offsets if at else (0,) * LANES for at in given)))


@lru_cache
def _pattern_text(groups: int, offsets: tuple[tuple[int, ...], ...]) -> str:
    values: dict[str, Value] = {"groups": groups, **dict(zip(("x", "y", "z", "layer"), offsets))}
    return f"{site_type('pe_surface_pattern')} {site_literal('pe_surface_pattern', values)}"
