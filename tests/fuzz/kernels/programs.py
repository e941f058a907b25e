"""Random modules: a kernel with its device functions, what comes before its statements and what after."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests.fuzz.kernels import control, images, values, warps  # noqa: F401  (these register statements)
from tests.fuzz.kernels.calls import STRUCT, WORDS
from tests.fuzz.kernels.memory import KEPT, PHASE, SLOTS, TABLE, TALLIES, WORDS_BYTES
from tests.fuzz.kernels.writer import (
    COMMON_FEATURES,
    FLOATS,
    NARROW,
    PLACES,
    PREDICATES,
    REGISTERS,
    STATEMENTS,
    WIDE,
    Extent,
    Scope,
    Writer,
)

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
BLOCKS: list[Extent] = [
    (32, 1, 1), (64, 1, 1), (32, 1, 1), (64, 1, 1), (96, 1, 1), (128, 1, 1), (33, 1, 1), (33, 1, 1), (5, 1, 1),
    (16, 4, 1), (8, 8, 1), (7, 5, 1), (4, 4, 3), (16, 3, 1), (8, 4, 1), (2, 32, 1),
]  # fmt: skip
GRIDS: list[Extent] = [(1, 1, 1)] * 5 + [(2, 1, 1)] * 2 + [(2, 2, 1)]
BUDGETS = [1, 2, 3, 4, 4, 6, 8, 16]  # statements
OBJECTS = ("image", "scene", "picture")
NAME = re.compile(r"[%\w]+")
NUMBERED = re.compile(r"%([a-z])(\d+)\b")  # registers: a letter for the family, a number
VARIABLES = {
    "kept": f".local .align 16 .b8 kept[{KEPT}];",
    "prototype": "prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);",
    "structs": "structs: .callprototype (.param .align 8 .b8 _[16]) _ (.param .align 8 .b8 _[16], .param .b64 _);",
}
TABLES = {
    f"{space}_table": f".{space} .align 8 .u32 {space}_table[] = {{{', '.join(map(str, TABLE))}}};\n"
    for space in ("const", "global")
}
FEATURES = {"forms": 0.6, "exit": 0.25} | dict.fromkeys(sorted({one.feature for one in STATEMENTS} - {*COMMON_FEATURES}), 0.12)
"""How likely a program has them."""

COMPUTES = {"forms", "atomics", "textures", "surfaces", "matrices"}
"""Families that compute with floats in other ways: programs whose arithmetic all flushes subnormals have none of them."""


@dataclass(frozen=True)
class Program:
    """A module with a kernel ``k(in, out, sums, n, ...)``; ``n`` is 3, and more arguments are those of OBJECTS that it uses."""

    text: str
    grid: Extent
    block: Extent
    objects: tuple[str, ...] = ()

    @property
    def threads(self) -> int:
        return math.prod(self.grid) * math.prod(self.block)


def program(seed: int) -> Program:
    """The module of a seed."""
    rng = random.Random(seed)
    grid, block = rng.choice(GRIDS), rng.choice(BLOCKS)
    drawn = [name for name, probability in FEATURES.items() if rng.random() < probability]
    features = frozenset(["", *drawn, *(["one barrier"] if seed % 5 < 2 else [])])
    if "flushes" in features:
        features -= COMPUTES
    functions: dict[str, list[str]] = {WORDS: [], STRUCT: []}
    texts = [function(rng, functions, features) for _ in range(rng.choice([0, 0, 0, 1, 1, 2]))]
    if "pointers" in features:
        texts.append(function_of_struct(rng, functions, features))
    if functions[WORDS]:
        texts.append(f".global .u64 functions[] = {{{', '.join(functions[WORDS])}}};")
    writer = Writer(rng, block, functions, features, budget=rng.choice(BUDGETS))
    writer.statements(40, Scope(True), 0)
    body = "\n".join(writer.lines)
    body += "\n" + epilogue(body + "%r0 %r1", writer)
    body = f"{prologue(body, grid, writer, rng.random() < 0.2)}\n{body}"
    used = set(NAME.findall(body))
    objects = tuple(name for name in OBJECTS if f"%{name}" in used)
    parameters = "".join(f", .param .u64 {name}" for name in objects)
    kernel = f"""
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 n{parameters})
{{
{declarations(body, writer.shared_bytes)}{body}
  ret;
}}
"""
    code = "\n".join([*texts, kernel])
    tables = "".join(text for name, text in TABLES.items() if name in code)
    return Program(f"{HEADER}{tables}\n{code}", grid, block, objects)


# ---------------------------------------------------------------- what comes before statements


REGISTER_KINDS = {
    "r": "b32", "x": "b32", "t": "b32", "u": "b32", "c": "b32", "m": "b32", "n": "b32", "k": "b32", "d": "b64", "a": "b64",
    "w": "b64", "f": "f32", "e": "f32", "h": "b16", "p": "pred", "q": "pred",
}  # fmt: skip
SINGLE = {name: "b32" for name in ("all", "phase", "round", "step")} | {
    name: "b64" for name in ("in", "out", "sums", "own", "rows", "pointer", *OBJECTS)
}


def declarations(body: str, shared_bytes: int = 0) -> str:
    """The registers, variables and prototypes that a body uses."""
    used = set(NAME.findall(body))
    most: dict[str, int] = {}
    for family, number in NUMBERED.findall(body):
        most[family] = max(most.get(family, 0), int(number) + 1)
    lines = [f".reg .{kind} %{name}<{most[name]}>;" for name, kind in REGISTER_KINDS.items() if name in most]
    lines += [f".reg .{kind} %{name};" for name, kind in SINGLE.items() if f"%{name}" in used]
    lines += [text for name, text in VARIABLES.items() if name in used]
    lines += [f".shared .align 128 .b8 words[{shared_bytes}];"] if shared_bytes else []
    return "".join(f"  {line}\n" for line in lines)


def starts(body: str) -> str:
    """The first values of what a body uses."""
    used = set(NAME.findall(body))
    first = {f"%r{i}": f"mov.u32 %r{i}, {i * 0x9E3779B1 & 0xFFFFFFFF};" for i in range(REGISTERS)}
    first |= {f"%f{i}": f"mov.f32 %f{i}, 0f3F8{i}0000;" for i in range(FLOATS)}
    first |= {f"%d{i}": f"mov.u64 %d{i}, {i * 77};" for i in range(WIDE)}
    first |= {f"%h{i}": f"mov.b16 %h{i}, {i * 0x3A01};" for i in range(NARROW)}
    first |= {f"%q{i}": f"mov.pred %q{i}, {i % 2};" for i in range(PREDICATES)}
    first |= {name: f"mov.u32 {name}, 0;" for name in ("%phase", "%round", "%step")}
    first["kept"] = "st.local.v4.u32 [kept], {0, 1, 2, 3}; st.local.v4.u32 [kept+16], {4, 5, 6, 7};"
    return "\n".join(f"  {text}" for name, text in first.items() if name in used)


def places(grid: Extent, block: Extent, general: bool) -> dict[str, str]:
    """How a kernel computes what is in its registers, each from those before; ``general``: for every launch, not only its own.

    ``t0`` is the thread's x, ``t2`` its number in the block, ``t1`` in the grid of ``all``; ``own`` are its words of the output,
    ``rows`` those behind."""
    flat, single = block[1:] == (1, 1) and not general, grid == (1, 1, 1) and not general
    threads = "mov.u32 %x2, %ntid.y; mul.lo.u32 %x2, %x2, %x1; mov.u32 %x3, %ntid.z; mul.lo.u32 %x3, %x3, %x2;"
    in_block = f"""mov.u32 %t2, %tid.x; mov.u32 %x0, %tid.y; mov.u32 %x1, %ntid.x; mad.lo.u32 %t2, %x0, %x1, %t2;
  mov.u32 %x0, %tid.z; {threads} mad.lo.u32 %t2, %x0, %x2, %t2;"""
    in_grid = f"""mov.u32 %x1, %ntid.x; {threads} mov.u32 %x0, %ctaid.y; mov.u32 %x1, %nctaid.x; mov.u32 %x2, %ctaid.x;
  mad.lo.u32 %x0, %x0, %x1, %x2; mad.lo.u32 %t1, %x0, %x3, %t2;"""
    everything = f"""mov.u32 %x1, %ntid.x; {threads} mov.u32 %x0, %nctaid.x; mov.u32 %x1, %nctaid.y; mul.lo.u32 %x0, %x0, %x1;
  mul.lo.u32 %all, %x0, %x3;"""
    found = {f"%{name}": f"ld.param.u64 %{name}, [{name}];" for name in ("in", "out", "sums", *OBJECTS)}
    return found | {
        "%u0": "ld.param.u32 %u0, [n];", "%u1": "mov.u32 %u1, %ctaid.x;", "%t0": "mov.u32 %t0, %tid.x;",
        "%t2": "mov.u32 %t2, %tid.x;" if flat else in_block, "%t1": "mov.u32 %t1, %t2;" if single else in_grid,
        "%own": f"mul.wide.u32 %own, %t1, {4 * PLACES}; add.u64 %own, %own, %out;",
        "%all": everything if general else f"mov.u32 %all, {math.prod(grid) * math.prod(block)};",
        "%rows": f"mul.wide.u32 %rows, %all, {4 * PLACES}; add.u64 %rows, %rows, %out;",
    }  # fmt: skip


def varied(body: str) -> list[str]:
    """Registers that differ from thread to thread."""
    used = set(NAME.findall(body))
    loaded = "mul.wide.u32 %a0, %t1, 8; add.u64 %a0, %a0, %in; ld.global.v2.u32 {%r1, %r2}, [%a0];"
    lines = [loaded] if {"%r1", "%r2"} & used else []
    lines += ["mov.u32 %r3, %t2;"] if "%r3" in used else []
    lines += ["mov.b32 %f1, %t2; cvt.rn.f32.u32 %f1, %t2;"] if "%f1" in used else []
    lines += ["cvt.u16.u32 %h1, %t2;"] if "%h1" in used else []
    lines += ["setp.lt.u32 %q1, %t2, 7;"] if "%q1" in used else []
    return ["  " + line for line in lines]


def fill(w: Writer) -> list[str]:
    """What is in shared memory at first: small numbers, then zeros, among them an mbarrier for all threads."""
    if not w.shared_bytes:
        return []
    barrier = f"bar.sync 0; setp.eq.u32 %p0, %t2, 0; @%p0 mbarrier.init.shared.b64 [words+{PHASE}], {w.threads};"
    return [f"""  shl.b32 %x0, %t2, 2; mov.u32 %x3, words;
fill: setp.lt.u32 %p0, %x0, {WORDS_BYTES}; selp.b32 %x1, %x0, 0, %p0; add.u32 %x2, %x0, %x3; st.shared.u32 [%x2], %x1;
  add.u32 %x0, %x0, {4 * w.threads}; setp.lt.u32 %p0, %x0, {w.shared_bytes}; @%p0 bra fill;
  {barrier if "%phase" in " ".join(w.lines) else ""} bar.sync 0;"""]  # fmt: skip


def prologue(body: str, grid: Extent, w: Writer, general: bool) -> str:
    """What comes before a kernel's statements: the values that they use."""
    filled = fill(w)
    later = "\n".join([*varied(body), *filled, body])
    lines: list[str] = []
    for name, text in reversed(places(grid, w.block, general).items()):
        if name in NAME.findall(later):
            lines.insert(0, "  " + text)
            later += text
    return "\n".join([starts(body), *lines, *varied(body), *filled])


def epilogue(body: str, w: Writer) -> str:
    """The thread's values, to its words of the output."""
    used = set(NAME.findall(body))
    lines = [f"xor.b32 %r{i % 2}, %r{i % 2}, %r{i};" for i in range(2, REGISTERS) if f"%r{i}" in used]
    lines += [
        f"mov.b64 {{%x2, %x3}}, %d{i}; xor.b32 %r0, %r0, %x3; xor.b32 %r1, %r1, %x2;" for i in range(WIDE) if f"%d{i}" in used
    ]
    lines += [f"cvt.u32.u16 %x3, %h{i}; xor.b32 %r0, %r0, %x3;" for i in range(NARROW) if f"%h{i}" in used]
    lines += [f"selp.b32 %x3, {16 << i}, 0, %q{i}; xor.b32 %r1, %r1, %x3;" for i in range(PREDICATES) if f"%q{i}" in used]
    lines += [f"mov.b32 %x3, %f{i}; xor.b32 %r{i % 2}, %r{i % 2}, %x3;" for i in range(FLOATS) if f"%f{i}" in used]
    if w.shared_bytes >= SLOTS and "atomics" in w.features:
        lines += [f"mov.u32 %x3, words; bar.sync 0; ld.shared.v4.b32 {{%x0, %x1, %x2, %x3}}, [%x3+{TALLIES + at}]; "
                  "xor.b32 %x0, %x0, %x1; xor.b32 %x2, %x2, %x3; xor.b32 %r0, %r0, %x0; xor.b32 %r1, %r1, %x2;"
                  for at in (0, 16)]  # fmt: skip
    return "\n".join("  " + line for line in [*lines, "st.global.v2.u32 [%own], {%r0, %r1};"])


# ---------------------------------------------------------------- device functions


def function(rng: random.Random, functions: Mapping[str, list[str]], features: frozenset[str]) -> str:
    """A device function of two words; it may call those before it, and itself a few times."""
    name, writer = f"f{len(functions[WORDS])}", _writer(rng, functions, features)
    body, again = "\n".join(writer.lines), ""
    if rng.random() < 0.3:
        again = f"""
  and.b32 %x0, %r0, 3; setp.eq.u32 %p0, %x0, 0; @%p0 bra bottom; sub.u32 %x0, %x0, 1; call (%r2), {name}, (%x0, %r1);
bottom:"""
    functions[WORDS].append(name)
    body = f"""{starts(body + "%r2")}
  ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b];{again}
{body}
leave: xor.b32 %r0, %r0, %r2; add.u32 %r0, %r0, %r1; st.param.b32 [result], %r0; ret;
"""
    return f"""
.func (.param .b32 result) {name}(.param .b32 a, .param .b32 b)
{{
{declarations(body)}{body}}}
"""


def function_of_struct(rng: random.Random, functions: Mapping[str, list[str]], features: frozenset[str]) -> str:
    """A device function of a struct and a pointer to 16 bytes, whose result is a struct."""
    name, writer = f"g{len(functions[STRUCT])}", _writer(rng, functions, features, pointer=True)
    body = "\n".join(writer.lines)
    functions[STRUCT].append(name)
    body = f"""{starts(body + "%d0")}
  ld.param.v2.b32 {{%r0, %r1}}, [given]; ld.param.b64 %d0, [given+8]; ld.param.b64 %pointer, [at];
{body}
leave: st.param.v2.b32 [result], {{%r0, %r1}}; st.param.b64 [result+8], %d0; ret;
"""
    return f"""
.func (.param .align 8 .b8 result[16]) {name}(.param .align 8 .b8 given[16], .param .b64 at)
{{
{declarations(body)}{body}}}
"""


def _writer(rng: random.Random, functions: Mapping[str, list[str]], features: frozenset[str], pointer: bool = False) -> Writer:
    known = {signature: list(names) for signature, names in functions.items()}
    writer = Writer(rng, (32, 1, 1), known, features, budget=4, kernel=False, pointer=pointer)
    writer.statements(3, Scope(False), 1)
    return writer
