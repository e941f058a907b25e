"""Scalar source operands: registers, literals, special registers and the names of variables."""

from __future__ import annotations

from ptxemu.check import typerules
from ptxemu.check.addresses import NARROW_SPACES
from ptxemu.check.candidate import Candidate
from ptxemu.check.names import written
from ptxemu.check.operands import Computed, Negated, Value
from ptxemu.ir.ops import Addr, Function, Reg, SReg, SymRef, Variable
from ptxemu.ir.types import ScalarType
from ptxemu.isa import video
from ptxemu.isa.special import NOT_RUN, SPECIAL_REGISTERS
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

SUMMAND = 3  # of the video instructions
MASKED_BITS = 256  # of a store that may leave out elements


def problem(form: Candidate, kind: ScalarType, value: Value, index: int) -> str | None:
    opcode = form.row.opcode
    if isinstance(value, Computed):
        return _sum(form, kind, value, index)
    if isinstance(value, Reg):
        return None if form.fits(kind, value.type) else form.misfit(kind, value.type, index)
    if isinstance(value, (ast.Int, ast.Float)):
        return None if typerules.literal_fits(kind, value) else _literal_misfit(form, kind, value)
    if isinstance(value, Negated):
        return None if kind.kind == "pred" else f"operand {index + 1} of '{opcode}' is not a predicate"
    if isinstance(value, SReg):
        return _special(form, kind, value)
    if isinstance(value, SymRef):
        return _symbol(form, kind, value, index)
    if isinstance(value, Addr):
        return f"'{opcode}' takes a value here, not an address in brackets"
    vector = form.values[index]
    if value is None and "masked" in form.row.traits and isinstance(vector, tuple) and kind.bits * len(vector) == MASKED_BITS:
        return None if any(item is not None for item in vector) else f"'{opcode}' must store an element"
    return f"operand {index + 1} of '{opcode}' must be a register or a literal"


def _sum(form: Candidate, kind: ScalarType, value: Computed, index: int) -> str | None:
    """``%r1+4``, whose width ptxas does not look at."""
    held = value.type
    mixed = held.kind not in "usb" if kind.kind in "us" else held.kind in "us" and kind.kind != "b"
    sized = _sized(form, kind, index) or f"count:{index}" in form.row.traits
    if _no_sums(form, kind, index):
        return f"an operand of '{form.row.opcode}' cannot be a sum"
    if mixed or kind.kind == "pred" or (kind.kind == "packed" and held.is_float) or (sized and not form.fits(kind, held)):
        return form.misfit(kind, held, index)
    if held.kind not in "usb" or held.bits == 8 or not form.fits(kind, held):
        raise UnsupportedError(f"the sum of a register of type {held} and a constant is not supported as {kind}")
    return None


def _sized(form: Candidate, kind: ScalarType, index: int) -> bool:
    """Whether ptxas checks the size of a sum or a function: it does, for one, if no modifier gives the type of the operand."""
    traits = form.row.traits
    if not traits.isdisjoint({f"unsized:{index}", f"unsized:{kind.kind}"}):
        return False
    return not form.typed or not traits.isdisjoint({"sized", f"sized:{index}"})


def _composed(form: Candidate, kind: ScalarType) -> bool:
    """Whether ptxas expands the instruction into others, which do not take sums and functions."""
    row = form.row
    long_integer = "composed:64" in row.traits and kind.bits == 64 and not kind.is_float
    return long_integer or "composed" in row.traits or (row.chapter == video.CHAPTER and row.opcode[-1] in "24")


def _no_sums(form: Candidate, kind: ScalarType, index: int) -> bool:
    return _composed(form, kind) or (form.row.chapter == video.CHAPTER and index < SUMMAND)


def _special(form: Candidate, kind: ScalarType, value: SReg) -> str | None:
    if "specials" not in form.row.flags:
        return f"a special register cannot be an operand of '{form.row.opcode}'; copy it with mov"
    types = SPECIAL_REGISTERS[value.name]
    if typerules.special_fits(kind, types):
        if value.name in NOT_RUN:
            raise UnsupportedError(f"the special register '%{value.name}' is not supported")
        return None
    return f"'%{value.name}' has type {types[0]}, which does not fit '{form.row.opcode}{form.written()}'"


def _symbol(form: Candidate, kind: ScalarType, value: SymRef, index: int) -> str | None:
    opcode, symbol, traits = form.row.opcode, value.symbol, form.row.traits
    named = "symbols" in traits
    impossible = "functionless" in traits or (not named and (_sized(form, kind, index) or _composed(form, kind)))
    if isinstance(symbol, Function) and not impossible and ("moves" not in traits or kind.bits < 32 or kind.is_float):
        raise UnsupportedError(f"the address of a function as an operand of '{opcode}' is not supported")
    narrow = isinstance(symbol, Variable) and symbol.space == "global" and kind.bits < 64
    if value.offset and kind.kind in "usb" and not _no_sums(form, kind, index) and (narrow or not named):
        raise UnsupportedError(f"the address of a variable with an offset as an operand of '{opcode}' is not supported")
    if not named or "to" in form.mods:
        name = written(symbol.name)
        return f"the name of a variable cannot be an operand of '{opcode}'; write [{name}] or use mov"
    if "converts" in traits and isinstance(symbol, Function):
        return f"'{symbol.name}' is a function, not a variable"
    if "shared" in traits and not (isinstance(symbol, Variable) and symbol.space == "shared"):
        return f"'{written(symbol.name)}' is not in .shared space"
    if "converts" in traits and isinstance(symbol, Variable) and symbol.space != form.space():
        return f"'{written(symbol.name)}' is in .{symbol.space} space, not .{form.space()}"
    if isinstance(symbol, Variable) and symbol.type.kind == "opaque" and kind.name != "u64":
        return f"the handle of a {symbol.type} has type u64, not {kind}"
    if isinstance(symbol, Variable) and symbol.space == "param" and symbol not in form.roles:
        return f"the address of '{written(symbol.name)}' cannot be taken: it is only passed to or returned by a call"
    short = not isinstance(symbol, Variable) or symbol.space in NARROW_SPACES
    if kind.kind in "usb" and (kind.bits == 64 or (kind.bits == 32 and short)):
        return None
    if "moves" in traits and kind.name in ("u16", "s16", "b16"):
        raise UnsupportedError(f"the low 16 bits of the address of '{written(symbol.name)}' are not supported")
    return f"the address of '{written(symbol.name)}' does not fit type {kind}"


def _literal_misfit(form: Candidate, kind: ScalarType, value: ast.Int | ast.Float) -> str:
    name = "an integer" if isinstance(value, ast.Int) else "a floating-point"
    advice = ""
    if isinstance(value, ast.Int) and kind.name in ("f32", "f64"):
        advice = f"; write {value.value}.0"
    return f"{name} literal does not fit type {kind} of '{form.row.opcode}'{advice}"
