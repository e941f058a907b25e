"""Rows of the few ops that passes insert. They never appear in a source, so they are not in the table."""

from __future__ import annotations

from msgspec.structs import replace

from ptxemu.ir import Addr, Function, Imm, Op, Operand, Reg, SymRef
from ptxemu.isa.table import Row
from ptxemu.types import PRED, U32, ScalarType


def _row(name: str, *flags: str) -> Row:
    return Row(name, (), (), (1, 0), 0, name, frozenset(flags), "internal", name)


MOVE = _row("_move")
EQUAL = _row("_equal")
KEEP = _row("_keep", "varying")
BRANCH = replace(_row("_branch"), lower="bra")
PARAM_LOAD = replace(_row("_param_load"), lower="ld")
PARAM_STORE = replace(_row("_param_store"), lower="st")
INVALID_BRANCH = _row("_invalid_branch")
INVALID_CALL = _row("_invalid_call")
ENTER = _row("_enter")  # start of a device function: is there room for it?
STACK_POINTER = _row("_stack_pointer")  # the end of the function's frame in local memory
ARGUMENTS = _row("_arguments", "varying")  # the values that a device function was called with
RESULTS = _row("_results")  # a device function returns, with these values
BARRIER_JOIN = _row("_barrier_join")  # lanes arrive at a barrier, each for itself
BARRIER_LEAVE = _row("_barrier_leave", "barrier", "varying")  # and go on from there
OUTGOING = _row("_outgoing", "uniform")  # where a callee's frame starts, which is where large parameters are left
COPY_OUT = _row("_copy_out")  # a large parameter, from memory to the frame of the callee
COPY_BACK = _row("_copy_back")  # and a large result
EXTRACT = _row("_extract")
DEPOSIT = _row("_deposit")


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


def equal(dst: Reg, a: Reg, value: int, type: ScalarType, like: Op) -> Op:
    """Predicate ``dst = (a == value)``."""
    operands = (a, Imm(value, type))
    return Op(EQUAL, {}, (dst,), operands, (PRED,), (type, type), like.pos, like.end, loc=like.loc)


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


def param_access(place: SymRef, value: Reg | Imm, like: Op, *, store: bool) -> Op:
    """Store ``value`` to a place in a param variable, or load it from there."""
    address, kind = Addr(place, 0), value.type
    mods = {"space": "param"}
    if store:
        return Op(PARAM_STORE, mods, (), (address, value), (), (None, kind), like.pos, like.end, loc=like.loc)
    assert isinstance(value, Reg)
    return Op(PARAM_LOAD, mods, (value,), (address,), (kind,), (None,), like.pos, like.end, loc=like.loc)


def marker(row: Row, like: Op, dsts: tuple[Reg, ...] = (), srcs: tuple[Operand, ...] = ()) -> Op:
    """An op of a device function's start or end, which moves values of the registers' own types."""
    types = tuple(source.type for source in srcs if isinstance(source, (Reg, Imm)))
    return Op(row, {}, dsts, srcs, tuple(dst.type for dst in dsts), types, like.pos, like.end, loc=like.loc)


def extract(dst: Reg, source: Reg, shift: int, like: Op) -> Op:
    """``dst = source >> shift``, cut off or extended by zeros."""
    operands, types = (source, Imm(shift, U32)), (source.type, U32)
    return Op(EXTRACT, {}, (dst,), operands, (dst.type,), types, like.pos, like.end, guard=like.guard, loc=like.loc)


def deposit(dst: Reg, rest: Reg | Imm, value: Reg, shift: int, like: Op) -> Op:
    """``dst = rest | value << shift``, all of one type."""
    operands = (rest, value, Imm(shift, U32))
    types = (rest.type, value.type, U32)
    return Op(DEPOSIT, {}, (dst,), operands, (dst.type,), types, like.pos, like.end, loc=like.loc)
