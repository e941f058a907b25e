"""Kernels of instructions as the instruction table describes them, with hostile operands.

Each instruction is a *station* of the kernel, in a scope of its own: its registers are loaded from uniform parameters, from a
column of 32 values or computed, it runs plainly, under a predicate, in a divergent branch or in a loop, and its registers are
stored.  A launch runs the stations whose bits are set in the parameter ``which``.  Since forms come from the table, an
instruction that is added there is covered.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache

from ptxemu.isa import rows
from ptxemu.isa.table import Row
from tests.fuzz.hostile import values
from tests.fuzz.hostile.calls import CALLS, EXTERNS
from tests.fuzz.hostile.program import Launch, Program, Value
from tests.support.row_forms import declared, drawn

COLUMNS, UNIFORMS, SLOTS = 8, 8, 4
HANDLED = frozenset({"surface", "texture", "sampler"})
REGISTER = re.compile(r"%([a-z]+)(\d+)")
ADDRESS = re.compile(r"\[(%[a-z]+\d|[a-z]\w*)((?:\+\d+)?)\]")
OFFSETS = (1, 4, 8, 16, 60, 64, 255, 256, 4096, 65536, 2**31 - 1, -1, -4, -16, -256, -4096, -(2**31))
SIZES = (0, 1, 16, 64, 256, 4096)
SHAPES = ((32, 1, 1), (1, 1, 1), (64, 1, 1), (33, 1, 1), (16, 4, 1), (7, 3, 2), (96, 1, 1))
HEAD = """\
.version 9.0
.target sm_100a{mode}
.address_size 64
{externs}.global .align 16 .b8 gbuf[{gbuf}];
.const .align 16 .b8 cbuf[{cbuf}];
.shared .align 16 .b8 sbuf[{sbuf}];
.global .surfref surf;
.global .texref tex;
"""
KERNEL = """\
.visible .entry k(.param .u64 out, .param .u64 data, .param .align 16 .b8 u[{uniforms}], .param .align 16 .b8 n[32],
                  .param .u32 which)
{{
  .local .align 16 .b8 lbuf[{lbuf}];
  .reg .b64 %out, %data, %lane, %value, %other; .reg .b32 %t, %which, %bit, %count; .reg .pred %on, %odd, %more;
  ld.param.u64 %out, [out]; ld.param.u64 %data, [data]; ld.param.u32 %which, [which];
  mov.u32 %t, %tid.x; and.b32 %t, %t, 31; mul.wide.u32 %lane, %t, 8;
  add.u64 %out, %out, %lane; add.u64 %data, %data, %lane;
  and.b32 %bit, %t, 1; setp.ne.u32 %odd, %bit, 0;
{stations}
LX:
  ret;
}}
"""
LOADS = {
    "p": "setp.ne.u64 {0}, %value, 0;", "b": "cvt.u8.u64 {0}, %value;", "h": "cvt.u16.u64 {0}, %value;",
    "d": "mov.b64 {0}, %value;", "du": "mov.b64 {0}, %value;", "ds": "mov.b64 {0}, %value;", "g": "mov.b64 {0}, %value;",
    "q": "mov.b128 {0}, {{%value, %other}};", "e": "{{ .reg .b16 %x; cvt.u16.u64 %x, %value; mov.b16 {0}, %x; }}",
    **dict.fromkeys(("r", "f", "ee", "u", "s"), "{{ .reg .b32 %x; cvt.u32.u64 %x, %value; mov.b32 {0}, %x; }}"),
}  # fmt: skip
STORES = {
    "p": "selp.u64 %value, 1, 0, {0};", "b": "cvt.u64.u8 %value, {0};", "h": "cvt.u64.u16 %value, {0};",
    "d": "mov.b64 %value, {0};", "du": "mov.b64 %value, {0};", "ds": "mov.b64 %value, {0};", "g": "mov.b64 %value, {0};",
    "q": "mov.b128 {{%value, %other}}, {0};", "e": "{{ .reg .b16 %x; mov.b16 %x, {0}; cvt.u64.u16 %value, %x; }}",
    **dict.fromkeys(("r", "f", "ee", "u", "s"), "{{ .reg .b32 %x; mov.b32 %x, {0}; cvt.u64.u32 %value, %x; }}"),
}  # fmt: skip


def touches_memory(row: Row) -> bool:
    """Whether an instruction has to do with memory, handles or the stack."""
    kinds = {pattern.type for pattern in row.operands}
    stack = "stack" in (*row.implicit.reads, *row.implicit.writes)
    address = any(pattern.role == "mem" for pattern in row.operands)
    return stack or address or bool(row.effects.accesses or kinds & (HANDLED | {"address"}) or "widened" in row.flags)


@cache
def choices() -> tuple[list[list[Row]], list[list[Row]]]:
    """The supported rows by opcode: those of memory, and all others but branches, whose targets a station lacks."""
    memory: dict[str, list[Row]] = {}
    others: dict[str, list[Row]] = {}
    for opcode, forms in rows().items():
        for row in forms:
            goes = row.effects.calls or row.effects.leaves in ("block", "function")
            if row.supported and not row.any_operands and not goes:
                (memory if touches_memory(row) else others).setdefault(opcode, []).append(row)
    return list(memory.values()), list(others.values())


def picked(rng: random.Random) -> Row:
    memory, others = choices()
    table = memory if rng.random() < 0.85 else others
    return rng.choice(rng.choices(table, [len(forms) ** 0.5 for forms in table])[0])


def statement(rng: random.Random, independent: bool) -> str:
    """An instruction of the table with a hostile address, offset or symbol."""
    row = picked(rng)
    text = drawn(rng, row).text

    def moved(match: re.Match[str]) -> str:
        if rng.random() < 0.6:
            return match[0]
        offset = rng.choice(OFFSETS)
        return f"[{match[1]}{offset:+}]" if match[1] not in ("surf", "tex") else match[0]

    handled = any(pattern.type in HANDLED for pattern in row.operands)
    if handled and independent and row.opcode in ("tex", "tld4"):
        text = re.sub(r"\[(%d1|tex), \{", r"[\1, %d2, {", text)
    return text if handled else ADDRESS.sub(moved, text)


def _source(rng: random.Random) -> str:
    """Code that puts a value into %value (and another into %other)."""
    slot = rng.randrange(COLUMNS)
    roll = rng.random()
    if roll < 0.35:
        return f"ld.global.u64 %value, [%data+{256 * slot}];"
    if roll < 0.6:
        return f"ld.param.u64 %value, [u+{8 * slot}];"
    if roll < 0.68:  # indices of 32 bits that may wrap among the lanes
        width = rng.choice(("cvt.u64.u32 %value, %count", "cvt.s64.s32 %value, %count", "mul.wide.u32 %value, %count, 4",
                            "mul.wide.s32 %value, %count, 16"))  # fmt: skip
        index = f"ld.param.u32 %count, [u+{8 * slot}]; add.u32 %count, %count, %t;"
        return f"{index} {width}; add.u64 %value, %value, %{rng.choice(('out', 'data', 'value'))};"
    if roll < 0.78:
        scale = rng.choice((1, 4, 8, 16, 4096, 1 << 31))
        return f"ld.param.u64 %value, [u+{8 * slot}]; mad.wide.u32 %value, %t, {scale}, %value;"
    if roll < 0.87:
        symbol = rng.choice(("gbuf", "sbuf", "lbuf", "gbuf", "sbuf"))
        generic = f"cvta{'.' + {'g': 'global', 's': 'shared', 'l': 'local'}[symbol[0]]}.u64 %value, %value;"
        return f"mov.u64 %value, {symbol}; " + rng.choice(("", generic))
    return f"mov.b64 %value, {values.edge(rng) % 2**64};"


def station(rng: random.Random, number: int, text: str) -> str:
    """The statement with its registers, in a scope that the launch can choose."""
    registers = list(dict.fromkeys(match[0] for match in REGISTER.finditer(text)))
    lines = [f"{{ // station {number}", declared(text)]
    for register in registers:
        bank = REGISTER.match(register)[1]  # type: ignore[index]
        other = "ld.global.u64 %other, [%data];" if bank == "q" else ""
        lines += [f"{_source(rng)} {other}", LOADS[bank].format(register)]
    lines += _around(rng, number, text)
    for index, register in enumerate(registers[:SLOTS]):
        bank = REGISTER.match(register)[1]  # type: ignore[index]
        lines += [f"{STORES[bank].format(register)} st.global.u64 [%out+{(number * SLOTS + index) * 256}], %value;"]
    body = "\n".join(f"    {line}" for line in lines)
    skip = f"  and.b32 %bit, %which, {1 << number}; setp.eq.u32 %on, %bit, 0; @%on bra S{number};"
    return f"{skip}\n{body}\n  }}\nS{number}:"


def _around(rng: random.Random, number: int, text: str) -> list[str]:
    """How the statement is reached."""
    roll = rng.random()
    if roll < 0.5:
        return [text]
    if roll < 0.65 and text.count(";") == 1:
        return [f"@{rng.choice(('', '!'))}%odd {text}"]
    if roll < 0.85:
        return [f"@%odd bra D{number};", text, f"D{number}:"]
    count = rng.choice((2, 5, 40))
    return [
        "mov.u32 %count, 0;", f"L{number}:", text, f"add.u32 %count, %count, 1; setp.lt.u32 %more, %count, {count};",
        f"@%more bra L{number};",
    ]  # fmt: skip


def launches(rng: random.Random, stations: int) -> tuple[Launch, ...]:
    """Each station by itself with several values, and some together."""
    chosen = [1 << number for number in range(stations) for _ in range(6)] + [rng.getrandbits(stations) for _ in range(3)]
    return tuple(launch(rng, which) for which in chosen)


def launch(rng: random.Random, which: int) -> Launch:
    make: Callable[[random.Random], Value] = rng.choice((values.value, values.address))
    uniforms = tuple(make(rng) for _ in range(UNIFORMS))
    data = tuple(values.column(rng, make) for _ in range(COLUMNS))
    number = tuple(values.value(rng) for _ in range(4))
    grid = rng.choice(((1, 1, 1), (1, 1, 1), (2, 1, 1), (3, 2, 1), (40, 1, 1)))
    shared = rng.choice((0, 0, 64, 4096, 48 << 10))
    return Launch("k", grid, rng.choice(SHAPES), ("out", "data", uniforms, number), (which,), data, shared, rng.random() < 0.05)


def program(rng: random.Random) -> Program:
    independent = rng.random() < 0.2
    count = rng.randint(2, 5)
    stations, externs = [], ""
    for number in range(count):
        if rng.random() < 0.2:
            name = "neighbouring" if rng.random() < 0.4 else rng.choice(list(CALLS))
            stations.append(station(rng, number, CALLS[name](rng, number)))
            externs = EXTERNS
        else:
            stations.append(station(rng, number, statement(rng, independent)))
    sizes = {name: rng.choice(SIZES[2:]) for name in ("gbuf", "cbuf", "sbuf", "lbuf")}
    head = HEAD.format(mode=", texmode_independent" if independent else "", externs=externs, **sizes)
    text = head + KERNEL.format(uniforms=8 * UNIFORMS, lbuf=sizes["lbuf"], stations="\n".join(stations))
    bind = {"surf": f"s.{rng.choice(list(values.SURFACES))}"} if rng.random() < 0.8 else {}
    bind |= {"tex": f"t.{rng.choice(list(values.TEXTURES))}"} if rng.random() < 0.8 else {}
    return Program(text, launches(rng, count), opt=rng.choice((0, 0, 0, 0, 2)), bind=bind)
