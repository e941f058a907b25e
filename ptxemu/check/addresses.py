"""Addresses: in brackets, of a state space or generic, and in registers (PTX ISA, "Addresses as Operands")."""

from __future__ import annotations

from typing import Any

from ptxemu.check import handles
from ptxemu.check.candidate import Candidate
from ptxemu.check.names import written
from ptxemu.check.operands import Value
from ptxemu.check.plan import Mismatch, Part
from ptxemu.ir.ops import Addr, Reg, SymRef, Variable
from ptxemu.ir.types import TYPES
from ptxemu.isa.operands import OperandPattern
from ptxemu.syntax import ast
from ptxemu.text.errors import UnsupportedError

GENERIC_SPACES = frozenset({"global", "shared", "local"})
NARROW_SPACES = frozenset({"shared", "local", "const", "param"})  # whose addresses fit 32 bits


def in_brackets(form: Candidate, index: int, pattern: OperandPattern, value: Value) -> Part:
    if not isinstance(value, Addr):
        raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must be an address in brackets", index)
    types = (form.type(pattern.type),) if pattern.type not in ("", "tensor") else ()
    base = value.base
    if form.space(pattern.space) == "tensor":
        _tensor_memory(index, base)
    elif isinstance(base, SymRef):
        _symbol(form, index, pattern.space, base.symbol)
    elif isinstance(base, Reg):
        _register(form, index, base, form.space(pattern.space))
    elif form.space(pattern.space) != "local":
        raise Mismatch("a literal address is allowed in .local space only", index)
    return Part("mem", types)


def _tensor_memory(index: int, base: object) -> None:
    if not isinstance(base, Reg) or base.type.kind not in "usb" or base.type.bits != 32:
        raise Mismatch("an address in tensor memory is in a register of 32 bits", index)


def of_tensor(form: Candidate, index: int, pattern: OperandPattern, value: Value) -> Part:
    """``[tensor map, coordinates]``: the map's address has no offset."""
    (base, *rest) = value if isinstance(value, tuple) else (value,)
    if len(rest) != 1 or not isinstance(rest[0], tuple):
        raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must be a tensor map and coordinates in braces", index)
    in_brackets(form, index, pattern, base)
    if base.offset or (isinstance(base.base, SymRef) and base.base.offset):
        raise Mismatch("the address of a tensor map takes no offset; add it to the register", index)
    return Part("tensor", handles.tensor(index, form.length(pattern) or 1, rest[0]))


def _symbol(form: Candidate, index: int, qualifier: str, symbol: Any) -> None:
    space, name = form.space(qualifier), written(symbol.name)
    if not isinstance(symbol, Variable):
        raise Mismatch(f"'{name}' is a function, not a variable", index)
    if f"opaque:{symbol.type.name}" in form.row.traits:
        raise UnsupportedError(f"'{name}' is a {symbol.type}, whose memory '{form.row.opcode}' cannot access here")
    if symbol.type.kind == "opaque":
        raise Mismatch(f"'{name}' is a {symbol.type}, which has no readable memory", index)
    if space and symbol.space != space:
        raise Mismatch(f"'{name}' is in .{symbol.space} space, not .{space}", index)
    if form.roles.get(symbol) == "input" and form.row.effects.writes:
        raise Mismatch(f"'{name}' is an input parameter and cannot be written", index)
    if form.roles.get(symbol) == "output" and form.row.effects.reads:
        raise Mismatch(f"'{name}' is the result of the function and cannot be read", index)
    if not space and symbol.space not in GENERIC_SPACES:
        raise Mismatch(f"'{name}' is in .{symbol.space} space: write '{form.row.opcode}.{symbol.space}'", index)
    allowed = next((one.values for one in form.row.qualifiers if one.name == qualifier), None)
    if not space and allowed is not None:
        if symbol.space not in allowed:
            text = f"'{form.row.opcode}{form.written()}' cannot access .{symbol.space} space"
            raise Mismatch(text, index) if "named" in form.row.traits else UnsupportedError(text)
        form.mods = form.mods | {qualifier: symbol.space}


def _register(form: Candidate, index: int, base: Reg, space: str) -> None:
    kind = base.type
    if kind.kind not in "usb" or kind.bits > 64:
        raise Mismatch(f"'{written(base.name)}' of type {kind} cannot be an address", index)
    widened = "widened" in form.row.flags
    if kind.bits < 32 and "address64" in form.row.traits:
        raise Mismatch(f"an address has 64 bits; '{written(base.name)}' has type {kind}", index)
    if kind.bits < 32 and widened and space not in NARROW_SPACES:
        raise Mismatch(f"an address has 32 or 64 bits; '{written(base.name)}' has type {kind}", index)
    short = (widened or "short" in form.row.traits) and kind.bits == 32 and space not in NARROW_SPACES
    if kind.bits < 32 or short:
        raise UnsupportedError(f"addresses of {kind.bits} bits are not supported here")
    if kind.bits == 32 and space not in NARROW_SPACES:
        named = f".{space}" if space else "generic"
        raise Mismatch(f"a {named} address has 64 bits; '{written(base.name)}' has type {kind}", index)


def in_register(form: Candidate, index: int, value: Value) -> Part:
    if isinstance(value, Reg) and value.type.kind in "usb" and value.type.bits in (32, 64):
        return Part("src", (value.type,))
    if isinstance(value, ast.Int) and "literal" in form.row.traits:
        return Part("src", (TYPES["u64"],))
    raise Mismatch(f"operand {index + 1} of '{form.row.opcode}' must be a 32- or 64-bit integer register", index)
