"""Arithmetic of random kernels: what is common, and any instruction on registers that ``tests/isa`` has a form of."""

from __future__ import annotations

import random
from functools import cache

from ptxemu.interpreter import image  # noqa: F401  (imports the elementwise lowerings)
from ptxemu.isa import rows
from ptxemu.lower.core.emit import ELEMENTWISE
from tests.fuzz.kernels.writer import Scope, Writer, statement
from tests.isa.forms import OPCODE, Form
from tests.isa.runner import FILES, read

BINARY = [
    "add.u32", "sub.u32", "mul.lo.u32", "mul.hi.u32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.s32", "shl.b32", "shr.u32",
    "shr.s32", "div.u32", "rem.u32", "mul.hi.s32", "add.s32", "min.s32", "div.s32",
]  # fmt: skip
UNARY = ["not.b32", "popc.b32", "clz.b32", "brev.b32", "neg.s32", "abs.s32"]
FLOAT = ["add.f32", "sub.f32", "mul.f32", "div.rn.f32", "min.f32", "max.f32", "add.rz.f32", "mul.rp.f32"]
FLUSHING = ["add.ftz.f32", "sub.ftz.f32", "mul.ftz.f32", "div.rn.ftz.f32", "min.ftz.f32", "max.ftz.f32", "add.ftz.sat.f32"]
SMALL = ["0f1F800000", "0f00800000", "0f007FFFFF", "0f80000001", "0f3F000000"]
SPECIAL = ["tid.x", "tid.y", "ctaid.x", "laneid", "ntid.x", "warpid", "nctaid.y", "lanemask_lt"]
CLASSES = {"b16": "h", "b32": "r", "b64": "d", "pred": "q"}  # of registers, as PTX declares them and as kernels call them


@statement(24)
def compute(w: Writer, scope: Scope, depth: int) -> None:
    target, kind = w.register(), w.random.random()
    if kind < 0.6:
        w.emit(f"{w.guard()}{w.random.choice(BINARY)} {target}, {w.register()}, {w.value()};")
    elif kind < 0.7:
        w.emit(f"{w.guard()}{w.random.choice(UNARY)} {target}, {w.register()};")
    elif kind < 0.8:
        w.emit(f"{w.guard()}mad.lo.u32 {target}, {w.register()}, {w.value()}, {w.value()};")
    elif kind < 0.9:
        condition = w.condition()
        w.emit(f"{w.guard()}selp.b32 {target}, {w.register()}, {w.value()}, {condition};")
    else:
        w.emit(f"{w.guard()}mov.u32 {target}, %{w.random.choice(SPECIAL)};")


def keeps_subnormals(w: Writer, scope: Scope, depth: int) -> bool:
    return "flushes" not in w.features


@statement(6, keeps_subnormals)
def floating(w: Writer, scope: Scope, depth: int) -> None:
    target, kind, guard = w.float(), w.random.random(), w.guard()
    if kind < 0.5:
        w.emit(f"{guard}{w.random.choice(FLOAT)} {target}, {w.float()}, {w.float()};")
    elif kind < 0.65:
        w.emit(f"{guard}fma.rn.f32 {target}, {w.float()}, {w.float()}, {w.float()};")
    elif kind < 0.8:
        w.emit(f"{guard}cvt.rn.f32.{w.pick('u32', 's32')} {target}, {w.register()};")
    elif kind < 0.9:
        w.emit(f"{guard}mov.b32 {w.register()}, {target};")
    else:
        w.emit(f"{guard}cvt.rzi.s32.f32 {w.register()}, {target};")


@statement(15, feature="flushes")
def flushing(w: Writer, scope: Scope, depth: int) -> None:
    """Arithmetic that takes subnormals for zeros, about the least normal number."""
    target, kind, guard = w.float(), w.random.random(), w.guard()
    if kind < 0.25:
        w.emit(f"{guard}mul.ftz.f32 {target}, {w.float()}, {w.pick(*SMALL)};")
    elif kind < 0.5:
        w.emit(f"{guard}{w.random.choice(FLUSHING)} {target}, {w.float()}, {w.float()};")
    elif kind < 0.6:
        w.emit(f"{guard}fma.rn.ftz.f32 {target}, {w.float()}, {w.float()}, {w.float()};")
    elif kind < 0.7:
        w.emit(f"{guard}setp.{w.pick('lt', 'equ', 'ge')}.ftz.f32 {w.predicate()}, {target}, {w.float()};")
    elif kind < 0.8:
        w.emit(f"{guard}mov.b32 {target}, {w.register()};")
    else:
        w.emit(f"{guard}mov.b32 {w.register()}, {target};")


@statement(6)
def widened(w: Writer, scope: Scope, depth: int) -> None:
    kind, guard = w.random.random(), w.guard()
    if kind < 0.4:
        w.emit(f"{guard}mul.wide.{w.pick('u32', 's32')} {w.wide()}, {w.register()}, {w.value()};")
    elif kind < 0.6:
        w.emit(f"{guard}cvt.{w.pick('u64.u32', 's64.s32')} {w.wide()}, {w.register()};")
    elif kind < 0.8:
        operation = w.pick("add.u64", "sub.u64", "xor.b64", "mul.lo.u64", "min.s64")
        w.emit(f"{guard}{operation} {w.wide()}, {w.wide()}, {w.wide()};")
    elif kind < 0.9:
        w.emit(f"{guard}cvt.u32.u64 {w.register()}, {w.wide()};")
    else:
        w.emit(f"{guard}mov.b64 {{{w.register()}, %x1}}, {w.wide()};")


@statement(4)
def narrowed(w: Writer, scope: Scope, depth: int) -> None:
    """A conversion of a part of a register."""
    source = w.pick("%t0", "%t2", w.register()) if w.kernel else w.register()
    kinds = ("u8", "s8", "u16", "s16", "u32", "s32")
    w.emit(f"{w.guard()}cvt.{w.pick(*kinds)}.{w.pick(*kinds)} {w.register()}, {source};")


@statement(3)
def predicates(w: Writer, scope: Scope, depth: int) -> None:
    kind, target = w.random.random(), w.predicate()
    if kind < 0.4:
        w.emit(f"{w.guard()}{w.pick('and', 'or', 'xor')}.pred {target}, {w.predicate()}, {w.condition()};")
    elif kind < 0.7:
        w.emit(f"{w.guard()}setp.{w.pick('lt', 'ge', 'ne')}.{w.pick('and', 'or', 'xor')}.s32 "
               f"{target}, {w.register()}, {w.value()}, {w.pick('', '!')}{w.predicate()};")  # fmt: skip
    else:
        w.emit(f"{w.guard()}selp.b32 {w.register()}, {w.register()}, {w.value()}, {w.predicate()};")


# ---------------------------------------------------------------- instructions of tests/isa


@statement(12, feature="forms")
def any_form(w: Writer, scope: Scope, depth: int) -> None:
    by_opcode = forms()
    form = w.random.choice(by_opcode[w.random.choice(list(by_opcode))])
    text, taken = form.text, set[str]()
    for operand in form.operands:
        register = _register(w.random, CLASSES[operand.register], taken if operand.result else set())
        text = text.replace(f"%{operand.name}", f"%{{{register}}}")  # braces, so that none is replaced twice
    w.emit(f"{w.guard() if text[0] != '@' else ''}{text.replace('%{', '%').replace('}', '')};")


def _register(random: random.Random, letter: str, taken: set[str]) -> str:
    """One that is not among several results of one instruction."""
    count = {"r": 10, "h": 4, "d": 4, "q": 3}[letter]
    name = random.choice([f"{letter}{index}" for index in range(count) if f"{letter}{index}" not in taken])
    taken.add(name)
    return name


@cache
def forms() -> dict[str, list[Form]]:
    """One-instruction forms that only compute, by opcode."""
    found: dict[str, list[Form]] = {}
    for path in FILES:
        for form in read(path).forms:
            match = OPCODE.match(form.text)
            assert match is not None
            opcode = match[1].partition(".")[0]
            if _is_plain(form) and all(row.lower in ELEMENTWISE for row in rows()[opcode]):
                found.setdefault(opcode, []).append(form)
    return found


def _is_plain(form: Form) -> bool:
    """It has no operands but registers of the usual kinds and constants, and each of its names once."""
    usual = all(operand.register in CLASSES and not operand.is_narrow for operand in form.operands)
    names = [f"%{operand.name}" for operand in form.operands]
    distinct = all(not other.startswith(name) for name in names for other in names if other != name)
    return usual and distinct and not any(mark in form.text for mark in (";", "{", "%t", "%l", "%w", "%shared", "%p"))
