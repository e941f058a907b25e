"""The rules for single ops of the typed IR."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxemu.ir.ops import Addr, Function, Imm, Module, Op, Operand, Reg, SReg, SymRef, Variable, Vec
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.irtext.problems import Problem
from ptxemu.isa.instruction_types import types_of
from ptxemu.isa.operands import OperandPattern
from ptxemu.isa.special import SPECIAL_REGISTERS

B8 = TYPES["b8"]


class Surroundings(Struct, frozen=True):
    """What the rules must know: the module, the function's own variables, and the form of the code."""

    module: Module
    variables: frozenset[Variable]
    ssa: bool
    graph: bool


def op_problems(around: Surroundings, op: Op) -> Iterator[Problem]:
    """Every rule that an op breaks."""
    for text in _texts(around, op):
        yield Problem(text, op.pos, op)


def _texts(around: Surroundings, op: Op) -> Iterator[str]:
    yield from _modifiers(op)
    found = list(_counts(op))
    yield from found or _operands(around, op)
    yield from _guard(around, op)
    if around.graph and (op.labels or op.effects.leaves in ("block", "kernel")):
        yield "a jump or exit is a terminator in a graph"


# ---------------------------------------------------------------- against the row


def _modifiers(op: Op) -> Iterator[str]:
    """Each qualifier has one of its values; a space may be that of the variable that a parameter has become."""
    if op.row.any_modifiers:
        return
    for qualifier in op.row.qualifiers:
        word = op.mods.get(qualifier.name)
        if word is None and qualifier.required:
            yield f"the modifier '{qualifier.name}' is missing"
        elif word is not None and word not in qualifier.values and qualifier.name != "space":
            yield f"'{word}' is not a value of the modifier '{qualifier.name}'"


def _counts(op: Op) -> Iterator[str]:
    """Operands and types are as many as the row has."""
    if len(op.dst_types) != len(op.dsts):
        yield f"{len(op.dsts)} results have {len(op.dst_types)} types"
    if len(op.src_types) != len(op.srcs):
        yield f"{len(op.srcs)} sources have {len(op.src_types)} types"
    if not op.row.any_operands and op.row.fitting(op.mods, len(op.dsts), len(op.srcs)) is None:
        yield f"{len(op.dsts)} results and {len(op.srcs)} sources do not fit the row '{op.row.text}'"


def _operands(around: Surroundings, op: Op) -> Iterator[str]:
    expected = types_of(op)
    given = (op.src_types, op.dst_types)
    if expected not in (None, given) and expected != (_moved(op.src_types, expected[0]), _moved(op.dst_types, expected[1])):
        yield f"the types are {_types(op.src_types, op.dst_types)}, but the row gives {_types(*expected)}"
    for dst, kind in zip(op.dsts, op.dst_types):
        if dst is not None:
            yield from _register(op, dst, kind)
    for source, wanted in zip(op.srcs, op.src_types):
        yield from _source(around, op, source, wanted)
    if expected is not None or op.row.chapter == "internal":  # rows of other texts than PTX describe those
        yield from _kinds(op)


def _moved(given: tuple[ScalarType | None, ...], expected: tuple[ScalarType | None, ...]) -> tuple[ScalarType | None, ...]:
    """The types with which a predicate is a byte where it is a parameter."""
    return tuple(B8 if kind is PRED and wanted is B8 else kind for kind, wanted in zip(given, expected))


def _kinds(op: Op) -> Iterator[str]:
    """An operand is what its pattern says: an address, a constant, a handle, a vector or a value."""
    moves = "moves" in op.row.traits
    for name, place in (op.row.fitting(op.mods, len(op.dsts), len(op.srcs)) or {}).items():
        pattern = op.row.pattern(name)
        if place is None or pattern is None:
            continue
        packs = moves or pattern.count is not None or pattern.rest
        if place.result and place.stop - place.start > 1 and not packs:
            yield f"operand '{name}' must be a register"
        for source in () if place.result else op.srcs[place.start : place.stop]:
            if wanted := _wanted(pattern, source, packs):
                yield f"operand '{name}' must be {wanted}"


def _wanted(pattern: OperandPattern, source: Operand, packs: bool) -> str:
    """What a source should be, "" if it is. ``packs``: it may be a vector."""
    if pattern.role == "mem":
        return "" if isinstance(source, Addr) else "an address"
    if pattern.name.startswith("imm"):
        return "" if isinstance(source, Imm) else "a constant"
    if pattern.type in ("surface", "texture", "sampler"):
        return "" if isinstance(source, (Reg, SymRef, Imm)) else "a handle"
    return "a value" if isinstance(source, Addr) or (isinstance(source, Vec) and not packs) else ""


def _types(sources: tuple[ScalarType | None, ...], results: tuple[ScalarType, ...]) -> str:
    return f"({', '.join(str(kind or '_') for kind in sources)} -> {', '.join(map(str, results))})"


# ---------------------------------------------------------------- operands


def _register(op: Op, reg: Reg, kind: ScalarType | None) -> Iterator[str]:
    """A register holds a value of its instruction type: both are predicates or neither, and it is wide enough."""
    if kind is not None and ((kind is PRED) != (reg.type is PRED) or reg.type.bits < kind.bits):
        yield f"'{reg.name}' of type {reg.type} cannot hold a value of type {kind}"


def _source(around: Surroundings, op: Op, source: Operand, kind: ScalarType | None) -> Iterator[str]:
    if isinstance(source, Vec):
        for item in source.items:
            yield from _source(around, op, item, kind)
    elif isinstance(source, Reg):
        yield from _register(op, source, kind)
    elif isinstance(source, Imm):
        yield from _constant(source)
    elif isinstance(source, SReg):
        if source.name not in SPECIAL_REGISTERS:
            yield f"there is no special register '%{source.name}'"
    elif isinstance(source, Addr):
        yield from _address(around, op, source)
    else:
        yield from _symbol(around, source)


def _constant(value: Imm) -> Iterator[str]:
    if not 0 <= value.bits < 1 << value.type.bits:
        yield f"the constant {value.bits} does not fit {value.type}"


def _address(around: Surroundings, op: Op, address: Addr) -> Iterator[str]:
    base = address.base
    if isinstance(base, SymRef):
        yield from _symbol(around, base)
    elif isinstance(base, Reg) and (base.type.kind not in "usb" or base.type.bits not in (32, 64)):
        yield f"'{base.name}' of type {base.type} cannot be an address"


def _symbol(around: Surroundings, reference: SymRef) -> Iterator[str]:
    symbol = reference.symbol
    if isinstance(symbol, Function):
        known = around.module.functions.get(symbol.name) is symbol
    else:
        known = symbol in around.variables or symbol.space not in ("local", "param")
    if not known:
        yield f"'{symbol.name}' is not declared in this function"


# ---------------------------------------------------------------- guards


def _guard(around: Surroundings, op: Op) -> Iterator[str]:
    """A guard is a predicate. In SSA form, an op with one says what its results are without it, and only such an op does."""
    if op.guard is not None and op.guard[0].type is not PRED:
        yield f"the guard has type {op.guard[0].type}"
    if not around.ssa or op.guard is None:
        if op.old:
            yield "there are old values without a guard" if around.ssa else "there are old values before SSA form"
        return
    if len(op.old) != len(op.dsts):
        yield f"{len(op.dsts)} results have {len(op.old)} old values"
        return
    for dst, old in zip(op.dsts, op.old):
        if dst is not None and old is None:
            yield f"'{dst.name}' has no old value"
        elif dst is not None and old is not None and old.type.bits != dst.type.bits:
            yield f"the old value of '{dst.name}' has type {old.type}, not {dst.type}"
