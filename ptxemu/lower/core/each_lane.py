"""Loads and stores of every lane, one after another, by code of the target that is there once for all of a kernel's.

All lanes are on as a rule, which load from any place and store in order. With AVX-512, addresses come in registers: words loaded
from where vectors were stored wait for those. Lanes that are off then use a place of the helper's own, and the runtime goes over
those that are on (csrc/memory/lanes.c) only if they are few; elsewhere, if any is off.
"""

from __future__ import annotations

from ptxemu.ir.block_shape import LANES
from ptxemu.lower.core.context import WORD, Context
from ptxemu.lower.core.scratch import bytes_of

NEAR = f"<{LANES} x i32>"
PAIRS = f"<{LANES // 2} x i64>"
COUNT = f"llvm.ctpop.i{LANES}"
FEW = 8
"""Lanes that the runtime goes over in less time than code goes through all."""
ROOM = bytes_of(WORD)
"""Where a helper has addresses for the runtime, or the place of lanes that are off."""
REST = f"i64 %plus, i{LANES} %mask, ptr %room"
IF_FULL = f"  %full = icmp eq i{LANES} %mask, -1\n  br i1 %full, label %all, label %some"
WIDENED = f"  %wide = zext {NEAR} %addresses to {WORD}"


def load(ctx: Context, bits: str, addresses: str, plus: str, mask: str, *, near: bool = False) -> str:
    """One integer of every active lane at addresses + ``plus``, an i64; zero in the other lanes. If ``near``, addresses are less
    than 2**31."""
    whole = f"<{LANES} x {bits}>"
    rest = f"i64 {plus}, i{LANES} {ctx.bits_of(mask)}"
    if ctx.target.avx512:
        ctx.declare(COUNT, f"declare i{LANES} @{COUNT}(i{LANES})")
        helper, room = _register_load(ctx, bits, near), ctx.temporary(f"[{ROOM + bytes_of(whole)} x i8]")
        return ctx.inst(f"call {whole} @{helper}({_in_registers(ctx, addresses, near)}, {rest}, ptr {room})")
    out = ctx.temporary(whole)
    ctx.stmt(f"call void @{_memory_load(ctx, bits)}(ptr {ctx.in_memory('i64', addresses)}, {rest}, ptr {out})")
    return ctx.inst(f"load {whole}, ptr {out}, align 64")


def store(ctx: Context, bits: str, addresses: str, plus: str, value: str, mask: str, *, near: bool = False) -> None:
    """Store one integer of every active lane at such places, in ascending lane order; with AVX-512."""
    ctx.declare(COUNT, f"declare i{LANES} @{COUNT}(i{LANES})")
    helper, values = _register_store(ctx, bits, near), ctx.in_memory(bits, value)
    rest = f"i64 {plus}, i{LANES} {ctx.bits_of(mask)}, ptr {ctx.temporary(WORD)}, ptr {values}"
    ctx.stmt(f"call void @{helper}({_in_registers(ctx, addresses, near)}, {rest})")


def _in_registers(ctx: Context, addresses: str, near: bool) -> str:
    return f"{NEAR} {ctx.vector.cast('trunc', 'i64', addresses, 'i32')}" if near else f"{WORD} {addresses}"


def _runtime(ctx: Context, kind: str, bits: str) -> str:
    """The runtime's function for lanes of which some are off."""
    name = f"pe_{kind}_{bits[1:]}"
    ctx.declare(name, f"declare void @{name}(ptr, i64, i{LANES}, ptr)")
    return name


# ---------------------------------------------------------------- code of helpers


def _place(lane: int, source: str) -> list[str]:
    """Code that makes ``%place`` of a lane, after some that makes its address."""
    return [source, f"  %sum.{lane} = add i64 %address.{lane}, %plus", f"  %place.{lane} = inttoptr i64 %sum.{lane} to ptr"]


def _extracted(kind: str) -> list[str]:
    """For each lane, code that makes ``%address`` of it from ``%places``, or from ``%addresses`` of 32 bits."""
    if kind == WORD:
        return [f"  %address.{lane} = extractelement {WORD} %places, i64 {lane}" for lane in range(LANES)]
    lines = [f"  %pairs = bitcast {NEAR} %addresses to {PAIRS}\n"] + [""] * (LANES - 1)
    for pair in range(LANES // 2):
        lines[2 * pair] += f"  %pair.{pair} = extractelement {PAIRS} %pairs, i64 {pair}\n"
        lines[2 * pair] += f"  %address.{2 * pair} = and i64 %pair.{pair}, {(1 << 32) - 1}"
        lines[2 * pair + 1] = f"  %address.{2 * pair + 1} = lshr i64 %pair.{pair}, 32"
    return lines


def _loads(bits: str, sources: list[str]) -> list[str]:
    """Code that loads from all places and makes ``%values`` of it; before it, for each lane, what makes its address.

    Bytes and halves become words by shifts first: there are fewer shuffles in a cycle, which put parts of vectors in place.
    """
    size = int(bits[1:])
    each, word = (64 // size, "i64") if size < 32 else (1, bits)
    words, lines, value = f"<{LANES // each} x {word}>", [], "poison"
    for lane, source in enumerate(sources):
        lines += [*_place(lane, source), f"  %part.{lane} = load {bits}, ptr %place.{lane}, align 1"]
        if each > 1:
            lines += _joined(bits, lane, each)
        if lane % each == each - 1:
            own = f"%{'word' if each > 1 else 'part'}.{lane}"
            lines += [f"  %words.{lane} = insertelement {words} {value}, {word} {own}, i64 {lane // each}"]
            value = f"%words.{lane}"
    return [*lines, f"  %values = bitcast {words} {value} to <{LANES} x {bits}>"]


def _joined(bits: str, lane: int, each: int) -> list[str]:
    """Code that makes a ``%word`` of a lane's part and those before it in the word."""
    if lane % each == 0:
        return [f"  %word.{lane} = zext {bits} %part.{lane} to i64"]
    return [
        f"  %wide.{lane} = zext {bits} %part.{lane} to i64",
        f"  %high.{lane} = shl i64 %wide.{lane}, {lane % each * int(bits[1:])}",
        f"  %word.{lane} = or i64 %word.{lane - 1}, %high.{lane}",
    ]


def _stores(bits: str, sources: list[str]) -> list[str]:
    """Code that stores at all places what is in memory at ``%values``."""
    lines = []
    for lane, source in enumerate(sources):
        lines += [
            f"  %from.{lane} = getelementptr {bits}, ptr %values, i64 {lane}",
            f"  %part.{lane} = load {bits}, ptr %from.{lane}, align {int(bits[1:]) // 8}",
            *_place(lane, source),
            f"  store {bits} %part.{lane}, ptr %place.{lane}, align 1",
        ]
    return lines


def _if_many() -> list[str]:
    """Code that goes on where many lanes are on, with ``%places``: that of the others is ``%room``, where 0 is then; or where few
    are, with the addresses there."""
    return [
        IF_FULL,
        "some:",
        f"  %count = call i{LANES} @{COUNT}(i{LANES} %mask)",
        f"  %many = icmp ugt i{LANES} %count, {FEW}",
        "  br i1 %many, label %apart, label %few",
        "few:",
        f"  store {WORD} %addresses, ptr %room, align 64",
        "  br label %off",
        "apart:",
        "  store i64 0, ptr %room, align 64",
        "  %start = ptrtoint ptr %room to i64",
        "  %away = sub i64 %start, %plus",
        f"  %first = insertelement {WORD} poison, i64 %away, i64 0",
        f"  %aways = shufflevector {WORD} %first, {WORD} poison, <{LANES} x i32> zeroinitializer",
        f"  %on = bitcast i{LANES} %mask to <{LANES} x i1>",
        f"  %those = select <{LANES} x i1> %on, {WORD} %addresses, {WORD} %aways",
        "  br label %all",
        "all:",
        f"  %places = phi {WORD} [ %addresses, %entry ], [ %those, %apart ]",
    ]


# ---------------------------------------------------------------- helpers


def _memory_load(ctx: Context, bits: str) -> str:
    """Define ``void f(addresses, plus, mask, out)`` for :func:`load`, with addresses in memory."""
    name = f"lanes.gather.{bits[1:]}"
    if name not in ctx.helpers:
        parameters, some = f"ptr %addresses, i64 %plus, i{LANES} %mask, ptr %out", _runtime(ctx, "gather", bits)
        sources = [
            f"  %from.{lane} = getelementptr i64, ptr %addresses, i64 {lane}\n"
            f"  %address.{lane} = load i64, ptr %from.{lane}, align 8"
            for lane in range(LANES)
        ]
        ctx.helpers[name] = "\n".join([
            f"define internal void @{name}({parameters}) noinline nounwind {{", IF_FULL, "all:", *_loads(bits, sources),
            f"  store <{LANES} x {bits}> %values, ptr %out, align 64", "  ret void",
            f"some:\n  call void @{some}({parameters})", "  ret void", "}",
        ])  # fmt: skip
    return name


def _register_load(ctx: Context, bits: str, near: bool) -> str:
    """Define ``values f(addresses, plus, mask, room)`` for :func:`load`."""
    name, whole = f"lanes.gather.{bits[1:]}", f"<{LANES} x {bits}>"
    if name not in ctx.helpers:
        some = _runtime(ctx, "gather", bits)
        ctx.helpers[name] = "\n".join([
            f"define internal {whole} @{name}({WORD} %addresses, {REST}) noinline nounwind {{\nentry:", *_if_many(),
            *_loads(bits, _extracted(WORD)), f"  ret {whole} %values",
            f"off:\n  %out = getelementptr i8, ptr %room, i64 {ROOM}",
            f"  call void @{some}(ptr %room, i64 %plus, i{LANES} %mask, ptr %out)",
            f"  %found = load {whole}, ptr %out, align 64", f"  ret {whole} %found", "}",
        ])  # fmt: skip
    if near and f"{name}.near" not in ctx.helpers:
        ctx.helpers[f"{name}.near"] = "\n".join([
            f"define internal {whole} @{name}.near({NEAR} %addresses, {REST}) noinline nounwind {{", IF_FULL, "all:",
            *_loads(bits, _extracted(NEAR)), f"  ret {whole} %values",
            "some:", WIDENED, f"  %found = tail call {whole} @{name}({WORD} %wide, {REST})", f"  ret {whole} %found",
            "}",
        ])  # fmt: skip
    return f"{name}.near" if near else name


def _register_store(ctx: Context, bits: str, near: bool) -> str:
    """Define ``void f(addresses, plus, mask, room, values)`` for :func:`store`."""
    name, values = f"lanes.scatter.{bits[1:]}", "ptr %values"
    if name not in ctx.helpers:
        some = _runtime(ctx, "scatter", bits)
        ctx.helpers[name] = "\n".join([
            f"define internal void @{name}({WORD} %addresses, {REST}, {values}) noinline nounwind {{\nentry:", *_if_many(),
            *_stores(bits, _extracted(WORD)), "  ret void",
            f"off:\n  call void @{some}(ptr %room, i64 %plus, i{LANES} %mask, {values})", "  ret void", "}",
        ])  # fmt: skip
    if near and f"{name}.near" not in ctx.helpers:
        ctx.helpers[f"{name}.near"] = "\n".join([
            f"define internal void @{name}.near({NEAR} %addresses, {REST}, {values}) noinline nounwind {{", IF_FULL, "all:",
            *_stores(bits, _extracted(NEAR)), "  ret void",
            "some:", WIDENED, f"  tail call void @{name}({WORD} %wide, {REST}, {values})", "  ret void", "}",
        ])  # fmt: skip
    return f"{name}.near" if near else name
