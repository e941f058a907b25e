"""mma, wmma, wgmma, ldmatrix, stmatrix, movmatrix: the runtime's, with the fragments of a whole warp in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ptxemu._runtime import ffi, lib
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.meetings import ALL, Meeting
from ptxemu.interpreter.surfaces import mask_of
from ptxemu.interpreter.transfer import site
from ptxemu.interpreter.translate import Reader, Translator, method
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, Vec
from ptxemu.ir.types import B32, B64, TYPES
from ptxemu.isa.matrix import BITS, dimensions, rows_of
from ptxemu.isa.multiplication import constant_of, constants_of, scaled_constants_of, warpgroup_constants_of

U16 = TYPES["u16"]
SLOTS = 272  # of the largest wgmma: 128 registers of D, as many of the accumulator, those of A and of metadata
Run = Callable[[Any, list[Lane], "Fragments"], None]


class Fragments:
    """Registers of a warp in slots of 32 words; those of 64 bits take two."""

    def __init__(self) -> None:
        self.memory = ffi.new("uint32_t[]", SLOTS * LANES)
        words = memoryview(ffi.buffer(self.memory)).cast("B")
        self.views = {32: words.cast("I"), 64: words.cast("Q")}

    def at(self, slot: int) -> Any:
        return self.memory + slot * LANES

    def rows(self, slot: int, widths: Iterable[int]) -> list[Any]:
        """Registers of these widths, one after the other from a slot on: for each, its values by lane."""
        found = []
        for bits in widths:
            start = slot * LANES * 32 // bits
            found.append(self.views[bits][start : start + LANES])
            slot += bits // 32
        return found


def together(t: Translator, op: Op, sources: list[tuple[Reader, int]], result: int, run: Run) -> Step:
    """An instruction of a whole warp.  Sources, with their widths, are put into slots one after the other; results lie in the
    slots from ``result`` on."""
    fragments, readers = Fragments(), [read for read, _ in sources]
    given = fragments.rows(0, [bits for _, bits in sources])
    made = fragments.rows(result, [kind.bits for kind in op.dst_types])
    results = [(write, row) for write, row in zip(t.writers(op), made, strict=True) if write is not None]
    after, key = t.after, (op.pos, op.opcode)

    def finish(warp: Any, lanes: list[Lane]) -> None:
        run(warp, lanes, fragments)
        for write, row in results:
            for lane in lanes:
                write(lane, row[lane.index])

    def execute(warp: Any, lanes: list[Lane], meetings: list[Meeting], mask: int) -> None:
        for lane, meeting in zip(lanes, meetings, strict=True):
            for row, value in zip(given, meeting.inputs, strict=True):
                row[lane.index] = value
        finish(warp, lanes)

    def step(warp: Any, group: list[Lane]) -> int | None:
        if warp.meetings.complete(group, ALL):
            for row, read in zip(given, readers, strict=True):
                for lane in group:
                    row[lane.index] = read(lane)
            finish(warp, group)
            return None
        meetings = [
            Meeting(key, ALL, [read(lane) for read in readers], execute, lambda lane, results: None, op.pos, True)
            for lane in group
        ]
        return warp.meetings.arrive(group, meetings, after)  # type: ignore[no-any-return]

    return step


def registers_of(t: Translator, op: Op, name: str = "a") -> list[tuple[Reader, int]]:
    """Readers of the registers of an operand, with their widths."""
    kind = op.type_of(name)
    assert kind is not None
    return [(read, kind.bits) for read in t.readers(op[name], kind)]


def _slots(registers: list[tuple[Reader, int]], first: int) -> tuple[list[int], int]:
    """The slots of registers that lie one after the other, and where they end."""
    found = []
    for _, bits in registers:
        found.append(first)
        first += bits // 32
    return found, first


@method("mma")
def mma(t: Translator, op: Op) -> Step:
    operands = [registers_of(t, op, name) for name in "abc"]
    places, end = [], 0
    for registers in operands:
        slots, end = _slots(registers, end)
        places.append(slots)
    sources, metadata = [item for registers in operands for item in registers], 0
    if "variant" in op.mods:
        sources.append((t.reader(op["e"], B32), 32))
        metadata, end = end, end + 1
    results = [end + index * (op.dst_types[0].bits // 32) for index in range(len(op.dsts))]
    constants = site("mma", op, **constants_of(op, t.numerics), metadata=metadata)
    for number, slots in enumerate((results, *places)):
        for index, slot in enumerate(slots):
            constants.slots[number][index] = slot

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        warp.grid.call("pe_mma", warp, constants, mask_of(lanes), fragments.memory)

    return together(t, op, sources, end, run)


@method("mma_scaled")
def mma_scaled(t: Translator, op: Op) -> Step:
    operands = [registers_of(t, op, name) for name in ("a", "b", "c", "fa", "fb")]
    operands += [registers_of(t, op, "e")] if "variant" in op.mods else []
    sources, chosen = (
        [item for registers in operands for item in registers],
        [*t.readers(op["ia"], U16), *t.readers(op["ib"], U16)],
    )
    constants, first = site("scaled", op, **scaled_constants_of(op)), 0
    for number, registers in enumerate(operands):
        slots, first = _slots(registers, first)
        for index, slot in enumerate(slots):
            if number < 3:
                constants.slots[number + 1][index] = slot
            elif number < 5:
                constants.factors[number - 3] = slot
            else:
                constants.metadata = slot
    result = first + len(chosen)
    for index in range(len(op.dsts)):
        constants.slots[0][index] = result + index

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        where = [row[0] for row in fragments.rows(first, [32] * len(chosen))]
        warp.grid.call("pe_mma_scaled", warp, constants, mask_of(lanes), fragments.memory, *where)

    return together(t, op, [*sources, *((read, 32) for read in chosen)], result, run)


@method("wgmma")
def wgmma(t: Translator, op: Op) -> Step:
    sums = [(t.reader(register, kind), kind.bits) for register, kind in zip(op.results, op.dst_types, strict=True)]
    in_memory = not isinstance(op["a"], Vec)
    sources = sums + ([] if in_memory else registers_of(t, op)) + ([(t.reader(op["e"], B32), 32)] if "sp" in op.mods else [])
    result, count = len(sources), len(sums)
    constants = site(
        "wgmma", op, in_memory=in_memory, a_across=constant_of(op, "immta"), b_across=constant_of(op, "immtb"),
        d=[*range(result, result + count)], c=[*range(count)], a=[*range(count, count + 4)],
        mma={**warpgroup_constants_of(op, t.numerics), "pos": op.pos, "metadata": result - 1},
    )  # fmt: skip
    scale, b = t.operand(op, "p"), t.reader(op["b"], B64)
    a = t.reader(op["a"], B64) if in_memory else (lambda lane: 0)

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        first = min(lanes, key=lambda lane: lane.index)
        warp.grid.call("pe_wgmma", warp, constants, mask_of(lanes), scale(first), a(first), b(first), fragments.memory)

    return together(t, op, sources, result, run)


# ---------------------------------------------------------------- fragments and memory


def _wmma(t: Translator, op: Op, function: str, sources: list[tuple[Reader, int]], count: int) -> Step:
    """wmma.load, wmma.store; the address and the stride are those of lane 0."""
    m, n, k = dimensions(op.mods["shape"])
    role, column_major = op.mods["role"], op.mods["layout"] == "col"
    rows, columns = {"a": (m, k), "b": (n, k)}.get(role, (m, n))
    across = column_major != (role == "b")  # of b, the columns are what the fragment has as rows
    codes = {"a": lib.PE_WMMA_A, "b": lib.PE_WMMA_B}
    address, space = t.access(op, "p")
    constants = site(
        "wmma", op, space=space, rows=rows, columns=columns, bits=BITS[op.mods["type"]], role=codes.get(role, lib.PE_WMMA_C),
        across=across, registers=count,
    )  # fmt: skip
    step = t.reader(op["stride"], B32) if op["stride"] is not None else (lambda lane: rows if across else columns)

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        first = min(lanes, key=lambda lane: lane.index)
        warp.w.pos, warp.w.space = op.pos, space
        warp.grid.call(function, warp, constants, mask_of(lanes), address(first), step(first), fragments.memory)

    return together(t, op, sources, 0, run)


@method("wmma_load")
def wmma_load(t: Translator, op: Op) -> Step:
    return _wmma(t, op, "pe_wmma_load", [], len(op.dsts))


@method("wmma_store")
def wmma_store(t: Translator, op: Op) -> Step:
    registers = registers_of(t, op)
    return _wmma(t, op, "pe_wmma_store", registers, len(registers))


def _rows(t: Translator, op: Op, function: str, sources: list[tuple[Reader, int]]) -> Step:
    """ldmatrix, stmatrix: lanes give the addresses of rows."""
    address, space = t.access(op, "p")
    _, constants = rows_of(op.mods)

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        rows = warp.grid.transfer.fill(0, 8, lanes, address)
        warp.w.pos, warp.w.space = op.pos, space
        warp.grid.call(function, warp, op.pos, space, *constants, mask_of(lanes), rows, fragments.memory)

    return together(t, op, sources, 0, run)


@method("ldmatrix")
def ldmatrix(t: Translator, op: Op) -> Step:
    return _rows(t, op, "pe_ldmatrix", [])


@method("ldmatrix.lines")
def ldmatrix_lines(t: Translator, op: Op) -> Step:
    return _rows(t, op, "pe_ldmatrix_lines", [])


@method("stmatrix.lines")
def stmatrix_lines(t: Translator, op: Op) -> Step:
    return _rows(t, op, "pe_stmatrix_lines", registers_of(t, op))


@method("stmatrix")
def stmatrix(t: Translator, op: Op) -> Step:
    return _rows(t, op, "pe_stmatrix", registers_of(t, op))


@method("movmatrix")
def movmatrix(t: Translator, op: Op) -> Step:
    sources = registers_of(t, op)

    def run(warp: Any, lanes: list[Lane], fragments: Fragments) -> None:
        warp.grid.call("pe_movmatrix", warp, op.pos, mask_of(lanes), fragments.memory, fragments.at(len(sources)))

    return together(t, op, sources, len(sources), run)
