"""TYPED_ATOMIC: its operands, and one op for each channel (vISA "TYPED_ATOMIC")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ptxemu.check.modifiers import Form
from ptxemu.dialects import build
from ptxemu.dialects.build import Builder
from ptxemu.dialects.operations import Operation
from ptxemu.dialects.text import TextError
from ptxemu.dialects.visa.ast import Instruction, Operand
from ptxemu.dialects.visa.masks import Span
from ptxemu.dialects.visa.operands import Raw, raw
from ptxemu.dialects.visa.table import entry_of
from ptxemu.dialects.visa.variables import GRF, Scope, SurfaceVariable, read, write
from ptxemu.ir.ops import Imm, Reg
from ptxemu.ir.types import B32, U64
from ptxemu.syntax.ast import Name

EXEC_SIZE = 8
LENIENT_SIZES = (1, 2, 4, 8)
SHARED_MEMORY = "T0"
NOTHING = Imm(0, B32)


def typed_atomic(
    body: Builder,
    scope: Scope,
    form: Form,
    item: Instruction,
    at: Span,
    strict: bool,
    options: Mapping[str, str],
    channels: Iterable[tuple[int, build.Guard | None]],
) -> None:
    """Check the operands, then append an op for each enabled channel, ascending."""
    entry = entry_of(form.mods["op"])
    _check_size(item, at, strict)
    if "f" in entry.classes and options["strict_typed_float"] == "reject":
        raise TextError(f"'.{entry.visa}' is not an operation on typed surfaces", item.name.pos, item.name.end)
    surface = _surface(scope, item.operands[0])
    raws = [_operand(scope, pattern.type, operand, at.size) for pattern, operand in zip(form.row.operands, item.operands)][1:]
    if strict:
        for place, (given, operand) in enumerate(zip(raws, item.operands[1:])):
            _check_type(entry, place, given, operand)
    if options["raw_alignment"] == "register":
        for given, operand in zip(raws, item.operands[1:]):
            _check_alignment(given, operand)
    *sources, result = raws
    signed = options["half_result"] == "sign" and entry.classes == "s"
    present = "".join("0" if source is None else "1" for source in sources)
    mods = form.mods | {"given": present, "result": "sign" if signed else "zero"}
    mods |= {"surplus": options["surplus_coordinate"], "missing": options["missing_coordinate"]}
    values = [[_value(body, source, channel, result) for source in sources] for channel in range(at.size)]
    for channel, guard in channels:
        numbered = mods | {"channel": str(at.offset + channel + 1)}
        _append(body, form, numbered, surface, values[channel], result, channel, guard)


def _append(
    body: Builder,
    form: Form,
    mods: dict[str, str],
    surface: SurfaceVariable,
    values: list[Reg | Imm],
    result: Raw | None,
    channel: int,
    guard: build.Guard | None,
) -> None:
    dst = body.temp("b32") if result is not None else None
    types = (U64, *(B32 for _ in values))
    body.add(form.row, mods, (dst,), (surface.handle, *values), (B32,), types, guard=guard)
    if result is not None and dst is not None:
        write(body, result.variable, result.byte_of(channel), 4, dst, guard)


def _value(body: Builder, source: Raw | None, channel: int, result: Raw | None) -> Reg | Imm:
    """A channel's element. What the results may overwrite is copied: the message takes its operands before."""
    if source is None:
        return NOTHING
    value = read(body, source.variable, source.byte_of(channel), 4)
    if result is None or source.variable.words is not result.variable.words:
        return value
    copy = body.temp("b32")
    body.emit("mov.b32", copy, value)
    return copy


def _operand(scope: Scope, kind: str, operand: Operand, size: int) -> Raw | None:
    """A raw operand of a row's kind; what the operation has no use for counts as null."""
    if kind == "surface":
        return None
    given = raw(scope, operand, size)
    if kind in ("coordinate", "value") and given is None:
        raise TextError("the null variable may not stand here", operand.pos, operand.end)
    if kind == "null" and given is not None:
        raise TextError("this operand must be the null variable V0", operand.pos, operand.end)
    return None if kind == "ignored" else given


def _surface(scope: Scope, operand: Operand) -> SurfaceVariable:
    if not isinstance(operand, Name):
        raise TextError("expected a surface, such as T6", operand.pos, operand.end)
    return surface_variable(scope, operand)


def surface_variable(scope: Scope, name: Name) -> SurfaceVariable:
    """A surface variable that is not the one of shared local memory."""
    if name.text == SHARED_MEMORY:
        raise TextError("T0, the shared local memory, is not a typed surface", name.pos, name.end)
    return scope.surface(name)


def _check_size(item: Instruction, at: Span, strict: bool) -> None:
    sizes = (EXEC_SIZE,) if strict else LENIENT_SIZES
    if at.size not in sizes:
        place = item.execution.size if item.execution is not None else item.name
        text = f"the execution size of TYPED_ATOMIC is {EXEC_SIZE}, not {at.size}"
        raise TextError(text, place.pos, place.end)


def _check_alignment(given: Raw | None, operand: Operand) -> None:
    if given is not None and (given.variable.offset + given.byte) % GRF:
        raise TextError(f"byte {given.byte} of '{given.variable.name}' begins no register", operand.pos, operand.end)


def _check_type(entry: Operation, place: int, given: Raw | None, operand: Operand) -> None:
    """Strict mode: D for the values of IMIN and IMAX, F too for those of floats, UD for everything else."""
    if given is None:
        return
    allowed: tuple[str, ...] = ("ud",)
    if place in (4, 6) and entry.classes == "s":
        allowed = ("d",)
    elif place >= 4 and entry.classes == "f":
        allowed = ("ud", "f")
    if given.variable.type not in allowed:
        wanted = " or ".join(allowed)
        raise TextError(f"'{given.variable.name}' has type {given.variable.type}, not {wanted}", operand.pos, operand.end)
