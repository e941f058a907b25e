"""Rows of the few ops that passes insert. They never appear in a source, so they are not in the table."""

from __future__ import annotations

from functools import cache

from ptxemu.ir.ops import Addr, Function, Imm, Op, Operand, Reg, SymRef
from ptxemu.ir.types import PRED, U32, ScalarType
from ptxemu.isa.table import Row, internal_row, with_operands

MOVE = internal_row("_move", "d, a", does="copies a")
EQUAL = internal_row("_equal", "d, a, b")
KEEP = internal_row("_keep", "d, a", does="varying")
BRANCH = internal_row("_branch", lower="bra", does="leaves block")
PARAM_LOAD = internal_row("_param_load", "d, [a]", lower="ld", does="reads [a] as d, varying in local")
PARAM_STORE = internal_row("_param_store", "[a], v", lower="st", does="writes [a] as v")
FRAME_LOAD = internal_row("_frame_load", "d, [a]@local", lower="ld", does="reads [a] as d, varying in local")
FRAME_STORE = internal_row("_frame_store", "[a]@local, v", lower="st", does="writes [a] as v")
STORE_ONE = internal_row("_store_one", "[a], v", lower="st", does="writes [a] as v")  # parts of a store that leaves out elements
STORE_TWO = internal_row("_store_two", "[a], v:*2", lower="st", does="writes [a] as v")
STORE_FOUR = internal_row("_store_four", "[a], v:*4", lower="st", does="writes [a] as v")
ALIGNED = internal_row("_aligned", "[a], size", does="faults")  # its address is aligned to all of its elements
IN_FRAME = frozenset({FRAME_LOAD, FRAME_STORE})  # of large parameters and results: OUTGOING has seen to it that there is room
INVALID_BRANCH = internal_row("_invalid_branch", does="leaves launch")
INVALID_CALL = internal_row("_invalid_call", "callee", does="leaves launch")
CALL = internal_row("_call", "d?, stack", lower="call", does="calls, varying")  # of a function; ``d``: who comes back
INDIRECT_CALL = internal_row("_indirect_call", "d?, callee, stack", lower="call", does="calls, varying")
ENTER = internal_row("_enter", does="enters function, faults")  # start of a device function: is there room for it?
STACK_POINTER = internal_row("_stack_pointer", "d", does="pure")  # the end of the function's frame in local memory
ARGUMENTS = internal_row("_arguments", "d...", does="enters function, varying")  # what a device function was called with
RESULTS = internal_row("_results", "a...", does="leaves function")  # a device function returns, with these values
OUTGOING = internal_row("_outgoing", "d, stack, size", does="faults, uniform")  # where a callee's frame starts
COPIES = "reads [s] for size, writes [d] for size"
COPY_OUT = internal_row("_copy_out", "[s], [d]@local, size", does=COPIES)  # a large parameter, to the frame of the callee
COPY_BACK = internal_row("_copy_back", "[d], [s]@local, size", does=COPIES)  # and a large result
EXTRACT = internal_row("_extract", "d, a, shift")
DEPOSIT = internal_row("_deposit", "d, rest, a, shift")
ANY_OF = internal_row("_any_of", "d, a, b")  # of predicates: a or b
ALL_OF = internal_row("_all_of", "d, a, b")
BUT_NOT = internal_row("_but_not", "d, a, b")  # a, and not b
UNSET_CHOICE = internal_row("_unset_choice", does="faults")  # a branch or a guard depends on a register that nobody has written
UNSET_ADDRESS = internal_row("_unset_address", does="faults")
UNSET_VALUE = internal_row("_unset_value", "a?", does="faults")  # that is stored, at an address that may be generic
FIRST_LANE = internal_row("_first_lane", "d", does="asks lanes, uniform")  # that is on
LANE_OF = internal_row("_lane_of", "d, a, lane", does="uniform, carries a")  # the value that one lane has of a
IN_STEP = internal_row("_in_step", "d, a, step", does="asks lanes, uniform")  # those whose a goes by a step from the middle one's
LINE_START = internal_row("_line_start", "d, a, lanes, step", does="asks lanes, uniform")  # the first's or the last's
IN_LINE = internal_row("_in_line", "d, a, start, step", does="asks lanes, uniform")  # those whose a is start + step * lane
WENT = internal_row("_went", "d, a, trips, step")  # a + trips * step
REST_TRIPS = internal_row(
    "_rest_trips", "d|all, rest, enters, so, first, bound, step, how, copies, numbers...", does="pure"
)  # those that a rest makes for an unrolled loop, and with its own (passes/rests.py)
TRIP = internal_row("_trip", "left, more, copies, positions...", does="pure")  # what faults in a trip of a loop name
MOVED = internal_row("_moved", "d, a, by, step, middle, first, start, others")  # a + by; how a lies (passes/inductions.py)
BARRIER_LEAVE = "_barrier_leave"


@cache
def halves(row: Row) -> tuple[Row, Row]:
    """The rows of a barrier's two halves: lanes arrive, each for itself, and go on from there with the results."""
    results = tuple(pattern for pattern in row.operands if pattern.role == "dst")
    sources = tuple(pattern for pattern in row.operands if pattern.role != "dst")
    join = internal_row("_barrier_join", does="arrives cta")
    leave = internal_row(BARRIER_LEAVE, does="meets warp, waits cta, varying")
    return with_operands(join, sources), with_operands(leave, results)


def move(dst: Reg, src: Operand, type: ScalarType, like: Op) -> Op:
    """``dst = src`` read and written as ``type``: truncates on the way in, extends by its signedness on the way out."""
    return Op(MOVE, {}, (dst,), (src,), (type,), (type,), like.pos, like.end, guard=like.guard, loc=like.loc)


def transfer(dst: Reg, src: Operand, type: ScalarType, like: Op) -> Op:
    """A move to or from a piece of a parameter, where a predicate is a byte."""
    if isinstance(src, Reg) and PRED in (dst.type, src.type):
        return extract(dst, src, 0, like)
    return move(dst, src, type, like)


def keep(dst: Reg, src: Reg, like: Op) -> Op:
    """``dst = src`` in the lanes that run; the others keep what they have."""
    return Op(KEEP, {}, (dst,), (src,), (dst.type,), (dst.type,), like.pos, like.end, loc=like.loc)


def invalid_branch(like: Op) -> Op:
    """The fault of a ``brx.idx`` whose index is past its list."""
    return Op(INVALID_BRANCH, {}, (), (), (), (), like.pos, like.end, loc=like.loc)


def is_function(dst: Reg, address: Reg, function: Function, like: Op) -> list[Op]:
    """Predicate ``dst``: ``address`` is that of ``function``."""
    token = Reg(f"{dst.name}.token", address.type)
    types = (address.type, address.type)
    load = Op(MOVE, {}, (token,), (SymRef(function, 0),), (token.type,), (token.type,), like.pos, like.end, loc=like.loc)
    return [load, Op(EQUAL, {}, (dst,), (address, token), (PRED,), types, like.pos, like.end, loc=like.loc)]


def branch(label: str, guard: tuple[Reg, bool] | None, like: Op) -> Op:
    """A jump to ``label``, conditional if there is a guard."""
    return Op(BRANCH, {}, (), (), (), (), like.pos, like.end, guard=guard, labels=(label,), loc=like.loc)


def load_from(row: Row, dst: Reg, address: Addr, space: str, like: Op) -> Op:
    """Read a piece of a parameter or a result: a PARAM_LOAD or FRAME_LOAD."""
    return Op(row, {"space": space}, (dst,), (address,), (dst.type,), (None,), like.pos, like.end, loc=like.loc)


def store_to(row: Row, address: Addr, value: Reg | Imm, space: str, like: Op) -> Op:
    """Write one: a PARAM_STORE or FRAME_STORE."""
    return Op(row, {"space": space}, (), (address, value), (), (None, value.type), like.pos, like.end, loc=like.loc)


def marker(row: Row, like: Op, dsts: tuple[Reg, ...] = (), srcs: tuple[Operand, ...] = ()) -> Op:
    """An op whose values have the registers' own types, as those of a device function's start and end."""
    types = tuple(source.type for source in srcs if isinstance(source, (Reg, Imm)))
    return Op(row, {}, dsts, srcs, tuple(dst.type for dst in dsts), types, like.pos, like.end, loc=like.loc)


def first_lane(dst: Reg, like: Op) -> Op:
    """``dst``: the first lane that is on."""
    return Op(FIRST_LANE, {}, (dst,), (), (dst.type,), (), like.pos, like.end, loc=like.loc)


def lane_of(dst: Reg, src: Reg, lane: Operand, like: Op) -> Op:
    """``dst = src`` as a lane has it, in all lanes."""
    return Op(LANE_OF, {}, (dst,), (src, lane), (dst.type,), (src.type, U32), like.pos, like.end, loc=like.loc)


def extract(dst: Reg, source: Reg, shift: int, like: Op) -> Op:
    """``dst = source >> shift``, cut off or extended by zeros."""
    operands, types = (source, Imm(shift, U32)), (source.type, U32)
    return Op(EXTRACT, {}, (dst,), operands, (dst.type,), types, like.pos, like.end, guard=like.guard, loc=like.loc)


def deposit(dst: Reg, rest: Reg | Imm, value: Reg, shift: int, like: Op) -> Op:
    """``dst = rest | value << shift``, all of one type."""
    operands = (rest, value, Imm(shift, U32))
    types = (rest.type, value.type, U32)
    return Op(DEPOSIT, {}, (dst,), operands, (dst.type,), types, like.pos, like.end, loc=like.loc)
