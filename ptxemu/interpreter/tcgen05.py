"""tcgen05: the runtime's tensor memory, with the registers of a warp, or the operands of each lane, in memory."""

from __future__ import annotations

from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.asynchronous import Receivers, update_of
from ptxemu.interpreter.lane import SPLIT, Lane, Step
from ptxemu.interpreter.matrices import Fragments, registers_of, together
from ptxemu.interpreter.surfaces import mask_of
from ptxemu.interpreter.transfer import rows, site
from ptxemu.interpreter.translate import Reader, Translator, method
from ptxemu.ir.ops import Addr, Op
from ptxemu.ir.types import B32, B64
from ptxemu.isa.multiplication import ctas_of, tensor_columns_of, tensor_constants_of, tensor_copy_of

SUMS, LEFT, RIGHT, DESCRIPTORS, DISABLED, FACTORS, ZEROS = 1, 2, 3, 4, 5, 6, 9  # areas, and three of addresses


def _place(t: Translator, operand: object) -> Reader:
    """An address in tensor memory."""
    assert isinstance(operand, Addr)
    read, offset = t.reader(operand.base, B32), operand.offset
    return lambda lane: read(lane) + offset & 0xFFFFFFFF


def _first(lanes: list[Lane]) -> Lane:
    return min(lanes, key=lambda lane: lane.index)


def _whole(t: Translator, op: Op, function: str, *operands: Reader, before: tuple[int, ...] = ()) -> Step:
    """An instruction that takes nothing but operands of lane 0."""

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        first = _first(lanes)
        warp.grid.call(function, warp, op.pos, *before, mask_of(lanes), *(read(first) for read in operands))

    return together(t, op, [], 0, run)


@method("tmem_alloc")
def alloc(t: Translator, op: Op) -> Step:
    address, space = t.access(op, "a")
    if ctas_of(op) > 1:
        return _alloc_both(t, op, address, space)
    return _whole(t, op, "pe_tmem_alloc", t.operand(op, "columns"), address, before=(1, space))


def _alloc_both(t: Translator, op: Op, address: Reader, space: int) -> Step:
    """Who comes first waits for the other CTA of the pair, and asks again when that has come."""
    columns, after = t.operand(op, "columns"), t.after

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        first, constants = _first(lanes), (op.pos, ctas_of(op), space, mask_of(lanes))

        def ask() -> bool:
            return bool(warp.grid.call("pe_tmem_alloc", warp, *constants, columns(first), address(first)))

        warp.block.pairing.come(lanes, op.pos, ask)

    meet = together(t, op, [], 0, run)

    def step(warp: Any, group: list[Lane]) -> int:
        for lane in group:
            lane.pc = after
        meet(warp, group)
        return SPLIT

    return step


@method("tmem_dealloc")
def dealloc(t: Translator, op: Op) -> Step:
    return _whole(t, op, "pe_tmem_dealloc", t.operand(op, "at"), t.operand(op, "columns"))


@method("tmem_give_up")
def give_up(t: Translator, op: Op) -> Step:
    return _whole(t, op, "pe_tmem_give_up")


@method("tmem_commit")
def commit(t: Translator, op: Op) -> Step:
    """An arrival, as all that was issued is complete."""
    if "multicast" not in op.mods:
        update = update_of(t, op, int(lib.PE_MBARRIER_ARRIVE), lambda lane: 1)
        return lambda warp, group: update(warp, group, ffi.NULL)
    told = Receivers(t, op, int(lib.PE_MBARRIER_ARRIVE), "a")

    def step(warp: Any, group: list[Lane]) -> None:
        ranks, objects = told.ranks(warp, LEFT, group), told.objects(warp, RIGHT, group)
        ones = warp.grid.transfer.fill(SUMS, 4, group, lambda lane: 1)
        warp.grid.call("pe_mbarrier_multicast", warp, told.site, mask_of(group), objects, ones, ranks)
        warp.block.cluster.progress()

    return step


def _move(t: Translator, op: Op, function: str, sources: list[tuple[Reader, int]]) -> Step:
    constants, place = site("tmem", op, **tensor_columns_of(op)), _place(t, op["t"])

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        warp.grid.call(function, warp, constants, mask_of(lanes), place(_first(lanes)), fragments.memory)

    return together(t, op, sources, 0, run)


@method("tmem_load")
def load(t: Translator, op: Op) -> Step:
    return _move(t, op, "pe_tmem_load_reduced" if "red" in op.mods else "pe_tmem_load", [])


@method("tmem_store")
def store(t: Translator, op: Op) -> Step:
    return _move(t, op, "pe_tmem_store", registers_of(t, op, "v"))


@method("tmem_copy")
def copy(t: Translator, op: Op) -> Step:
    """Each lane copies a matrix of its own."""
    constants, place, matrix = site("tmem_copy", op, **tensor_copy_of(op)), _place(t, op["t"]), t.reader(op["s"], B64)

    def step(warp: Any, group: list[Lane]) -> None:
        fill = warp.grid.transfer.fill
        warp.grid.call("pe_tmem_copy", warp, constants, mask_of(group), fill(SUMS, 4, group, place), fill(LEFT, 8, group, matrix))

    return step


@method("tmem_shift")
def shift(t: Translator, op: Op) -> Step:
    """Each lane moves rows."""
    place, ctas, pos = _place(t, op["t"]), ctas_of(op), op.pos

    def step(warp: Any, group: list[Lane]) -> None:
        warp.grid.call("pe_tmem_shift", warp, pos, ctas, mask_of(group), warp.grid.transfer.fill(SUMS, 4, group, place))

    return step


@method("tmem_mma")
def mma(t: Translator, op: Op) -> Step:
    """Each lane multiplies matrices of its own."""
    a, in_columns = op["a"], isinstance(op["a"], Addr)
    constants = site("tmem_mma", op, a_columns=in_columns, **tensor_constants_of(op, t.numerics))
    sums, left = _place(t, op["t"]), _place(t, a) if in_columns else t.reader(a, B64)
    right, descriptor, adds = t.reader(op["b"], B64), t.operand(op, "format"), t.operand(op, "p")
    off = op.get("off")
    disabled = [] if off is None else t.readers(off, B32)
    places = [_place(t, op[name]) if name in op.row.names else None for name in ("fa", "fb", "metadata")]
    zeros = None if op.get("zeros") is None else t.reader(op["zeros"], B64)

    def step(warp: Any, group: list[Lane]) -> None:
        fill = warp.grid.transfer.fill
        warp.grid.call(
            "pe_tmem_mma", warp, constants, mask_of(group), fill(SUMS, 4, group, sums), fill(LEFT, 8, group, left),
            fill(RIGHT, 8, group, right), fill(DESCRIPTORS, 4, group, descriptor),
            sum(lane.bit for lane in group if adds(lane)), rows(warp, DISABLED, 4, group, disabled) if disabled else ffi.NULL,
            *(fill(area, 4, group, place) if place else ffi.NULL for area, place in enumerate(places, FACTORS)),
            fill(ZEROS, 8, group, zeros) if zeros else ffi.NULL,
        )  # fmt: skip

    return step
