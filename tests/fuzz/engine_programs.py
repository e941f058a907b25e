"""Random kernels whose results do not depend on the order in which threads run.

Threads write places of their own, shared memory between barriers, and sums and the like that are the same in any order. Warp
instructions name the lanes that execute them. Loops end: those with a condition of their own by a counter.
"""

from __future__ import annotations

import math
import random
import re
from dataclasses import dataclass, field

HEADER = ".version 8.5\n.target sm_90\n.address_size 64\n"
Extent = tuple[int, int, int]
BLOCKS = [
    (32, 1, 1),
    (64, 1, 1),
    (16, 4, 1),
    (8, 8, 1),
    (96, 1, 1),
    (33, 1, 1),
    (7, 5, 1),
    (4, 4, 3),
    (5, 1, 1),
    (2, 32, 1),
    (128, 1, 1),
]
GRIDS = [(1, 1, 1), (1, 1, 1), (2, 1, 1), (2, 2, 1)]
BUDGETS = [3, 5, 8, 8, 12, 16, 30]  # statements
WORDS, PLACES, SUMS = 4096, 8, 8  # of the input, of the results of a thread, of the common results
REGISTERS, FLOATS, WIDE = 10, 4, 4

BINARY = [
    "add.u32", "sub.u32", "mul.lo.u32", "mul.hi.u32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.s32", "shl.b32", "shr.u32",
    "shr.s32", "div.u32", "rem.u32", "mul.hi.s32", "add.s32", "min.s32", "div.s32",
]  # fmt: skip
UNARY = ["not.b32", "popc.b32", "clz.b32", "brev.b32", "neg.s32", "abs.s32"]
FLOAT = ["add.f32", "sub.f32", "mul.f32", "div.rn.f32", "min.f32", "max.f32", "add.rz.f32", "mul.rp.f32"]
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge"]
REDUCE = ["add.u32", "min.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.u32"]


@dataclass(frozen=True)
class Program:
    """A module with a kernel ``k(in, out, sums, n)``; ``n`` is 3."""

    text: str
    grid: Extent
    block: Extent

    @property
    def threads(self) -> int:
        shape = (*self.grid, *self.block)
        total = 1
        for extent in shape:
            total *= extent
        return total


@dataclass
class Scope:
    """Where statements are written: ``together``, all threads of the block are there that have not exited; ``members`` is the
    register of the lanes that are there where they are fewer."""

    together: bool
    members: str = ""


@dataclass
class Writer:
    random: random.Random
    block: Extent
    functions: int
    lines: list[str] = field(default_factory=list)
    number: int = 0
    budget: int = 45
    exited: bool = False
    kernel: bool = True

    # -- small parts

    def fresh(self) -> int:
        self.number += 1
        return self.number

    def emit(self, text: str) -> None:
        self.lines.append("  " + text)

    def register(self) -> str:
        return f"%r{self.random.randrange(REGISTERS)}"

    def value(self) -> str:
        """A register or a constant."""
        if self.random.random() < 0.3:
            return str(
                self.random.choice(
                    [0, 1, 2, 3, 7, 31, 32, 255, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, self.random.randrange(1 << 32)]
                )
            )
        return self.register()

    def float(self) -> str:
        return f"%f{self.random.randrange(FLOATS)}"

    def wide(self) -> str:
        return f"%d{self.random.randrange(WIDE)}"

    def condition(self, *, uniform: bool = False) -> str:
        """A new predicate; ``uniform``: the same in all threads of a block."""
        name = f"%p{self.fresh()}"
        operands = (
            (f"%u{self.random.randrange(2)}", str(self.random.randrange(4))) if uniform else (self.register(), self.value())
        )
        kind = "u32" if uniform or self.random.random() < 0.6 else "s32"
        comparison = self.random.choice(COMPARE)
        if not uniform and self.random.random() < 0.4:  # of few bits, so that both sides happen
            self.emit(f"and.b32 %x0, {operands[0]}, {self.random.choice([1, 2, 3, 5, 16])};")
            operands = ("%x0", str(self.random.randrange(3)))
        self.emit(f"setp.{comparison}.{kind} {name}, {operands[0]}, {operands[1]};")
        return name

    def guard(self) -> str:
        if self.random.random() < 0.8:
            return ""
        return f"@{self.random.choice(['', '!'])}{self.condition()} "

    # -- statements

    def statements(self, count: int, scope: Scope, depth: int) -> None:
        for _ in range(count):
            if self.budget <= 0:
                return
            self.budget -= 1
            self.statement(scope, depth)

    def statement(self, scope: Scope, depth: int) -> None:
        choices = [(self.compute, 30), (self.floating, 6), (self.widened, 6), (self.local, 4)]
        if self.kernel:
            choices += [(self.load, 10), (self.store, 6), (self.reduce, 4)]
        if self.functions:
            choices += [(self.call, 5)]
        if depth < 4:
            choices += [
                (lambda: self.branch(scope, depth), 9),
                (lambda: self.loop(scope, depth), 6),
                (lambda: self.graph(depth), 2),
            ]
        if self.kernel and scope.together:
            choices += [
                (self.exchange, 4),
                (lambda: self.collective("-1"), 6),
                (self.shuffle, 4),
                (self.exit, 1),
                (self.vote_barrier, 2),
            ]
        elif self.kernel and scope.members:
            choices += [(lambda: self.collective(scope.members), 8)]
        made = self.random.choices([choice for choice, _ in choices], [weight for _, weight in choices])[0]
        made()

    def compute(self) -> None:
        target, kind = self.register(), self.random.random()
        if kind < 0.6:
            self.emit(f"{self.guard()}{self.random.choice(BINARY)} {target}, {self.register()}, {self.value()};")
        elif kind < 0.7:
            self.emit(f"{self.guard()}{self.random.choice(UNARY)} {target}, {self.register()};")
        elif kind < 0.8:
            self.emit(f"mad.lo.u32 {target}, {self.register()}, {self.value()}, {self.value()};")
        elif kind < 0.9:
            self.emit(f"selp.b32 {target}, {self.register()}, {self.value()}, {self.condition()};")
        else:
            special = self.random.choice(["tid.x", "tid.y", "ctaid.x", "laneid", "ntid.x", "warpid", "nctaid.y", "lanemask_lt"])
            self.emit(f"mov.u32 {target}, %{special};")

    def floating(self) -> None:
        target, kind = self.float(), self.random.random()
        if kind < 0.5:
            self.emit(f"{self.guard()}{self.random.choice(FLOAT)} {target}, {self.float()}, {self.float()};")
        elif kind < 0.65:
            self.emit(f"fma.rn.f32 {target}, {self.float()}, {self.float()}, {self.float()};")
        elif kind < 0.8:
            self.emit(f"cvt.rn.f32.{self.random.choice(['u32', 's32'])} {target}, {self.register()};")
        elif kind < 0.9:
            self.emit(f"mov.b32 {self.register()}, {target};")
        else:
            self.emit(f"cvt.rzi.s32.f32 {self.register()}, {target};")

    def widened(self) -> None:
        kind = self.random.random()
        if kind < 0.4:
            self.emit(f"mul.wide.{self.random.choice(['u32', 's32'])} {self.wide()}, {self.register()}, {self.value()};")
        elif kind < 0.6:
            self.emit(f"cvt.{self.random.choice(['u64.u32', 's64.s32'])} {self.wide()}, {self.register()};")
        elif kind < 0.8:
            operation = self.random.choice(["add.u64", "sub.u64", "xor.b64", "mul.lo.u64", "min.s64"])
            self.emit(f"{operation} {self.wide()}, {self.wide()}, {self.wide()};")
        elif kind < 0.9:
            self.emit(f"cvt.u32.u64 {self.register()}, {self.wide()};")
        else:
            self.emit(f"mov.b64 {{{self.register()}, %x1}}, {self.wide()};")

    def index(self) -> str:
        """A register with an index of the input: a pattern of the thread's place, or anything."""
        kind = self.random.randrange(7)
        start = self.random.randrange(500)
        texts = [
            f"add.u32 %x2, %t0, {start};", f"mad.lo.u32 %x2, %t0, {self.random.choice([2, 3, 4, 8])}, {start};",
            f"shr.u32 %x2, %t0, {self.random.randrange(4)}; add.u32 %x2, %x2, {start};", f"sub.u32 %x2, {start + 300}, %t0;",
            f"add.u32 %x2, %t1, {start};", f"and.b32 %x2, {self.register()}, {self.random.choice([0x7FF, 0x7F0, 0xF])};",
            f"add.u32 %x2, {self.register()}, %t0; and.b32 %x2, %x2, 0x7ff;",
        ]  # fmt: skip
        self.emit(texts[kind])
        return "%x2"

    def address(self, base: str, index: str, size: int) -> str:
        """The address of an element, in one of the ways in which compilers write it."""
        kind = self.random.randrange(4)
        if kind == 0:
            self.emit(f"mul.wide.u32 %a0, {index}, {size}; add.u64 %a0, %a0, {base};")
        elif kind == 1:
            self.emit(f"cvt.u64.u32 %a0, {index}; mad.lo.u64 %a0, %a0, {size}, {base};")
        elif kind == 2:
            self.emit(f"mul.wide.s32 %a0, {index}, {size}; add.s64 %a0, {base}, %a0;")
        else:
            self.emit(f"shl.b32 %x3, {index}, {size.bit_length() - 1}; cvt.u64.u32 %a0, %x3; add.u64 %a0, {base}, %a0;")
        return "%a0"

    def load(self) -> None:
        kind = self.random.random()
        space = self.random.choice([".global", ".global", ""])
        guard = self.guard()
        at = self.address("%in", self.index(), 4)
        offset = self.random.choice(["", "", "+4", "+64"])
        if kind < 0.6:
            self.emit(f"{guard}ld{space}.{self.random.choice(['u32', 'b32', 's32'])} {self.register()}, [{at}{offset}];")
        elif kind < 0.75:
            self.emit(f"{guard}ld{space}.{self.random.choice(['u8', 's8', 'u16', 's16'])} {self.register()}, [{at}{offset}];")
        elif kind < 0.85:
            self.emit(f"and.b64 {at}, {at}, -8; {guard}ld{space}.v2.u32 {{{self.register()}, %x1}}, [{at}];")
        else:
            self.emit(f"{guard}ld{space}.f32 {self.float()}, [{at}{offset}];")

    def store(self) -> None:
        kind, guard, value = self.random.random(), self.guard(), self.value()
        if kind < 0.35:  # next to each other in the thread
            self.emit(f"{guard}st.global.u32 [%own+{4 * self.random.randrange(PLACES)}], {value};")
        elif kind < 0.5:
            kind_ = self.random.choice(["u8", "u16"])
            self.emit(f"mov.b32 %x1, {value}; {guard}st.global.{kind_} [%own+{2 * self.random.randrange(2 * PLACES)}], %x1;")
        elif kind < 0.65:
            place = 8 * self.random.randrange(PLACES // 2)
            self.emit(f"{guard}st.global.v2.u32 [%own+{place}], {{{self.register()}, {self.register()}}};")
        elif kind < 0.8:
            self.emit(f"and.b32 %x2, {self.register()}, {PLACES - 1};")
            self.emit(f"{guard}st.global.u32 [{self.address('%own', '%x2', 4)}], {self.register()};")
        else:  # next to each other in the warp
            self.emit(f"mad.lo.u32 %x2, %all, {self.random.randrange(PLACES)}, %t1;")
            self.emit(f"{guard}st.global.u32 [{self.address('%rows', '%x2', 4)}], {self.register()};")

    def local(self) -> None:
        self.emit(f"and.b32 %x2, {self.value()}, 7; shl.b32 %x2, %x2, 2; mov.u32 %x3, kept; add.u32 %x2, %x2, %x3;")
        if self.random.random() < 0.5:
            self.emit(f"{self.guard()}st.local.u32 [%x2], {self.register()};")
        else:
            self.emit(f"{self.guard()}ld.local.u32 {self.register()}, [%x2];")

    def reduce(self) -> None:
        place = self.random.randrange(SUMS)
        operation = REDUCE[place]  # each place has one operation, or the order would count
        guard = self.guard()
        if self.random.random() < 0.3:
            self.emit(f"{guard}atom.global.{operation} %x1, [%sums+{4 * place}], {self.register()};")
        else:
            self.emit(f"{guard}red.global.{operation} [%sums+{4 * place}], {self.register()};")

    def call(self) -> None:
        target = f"f{self.random.randrange(self.functions)}"
        guard = self.guard()
        if self.random.random() < 0.7:
            self.emit(f"{guard}call ({self.register()}), {target}, ({self.register()}, {self.register()});")
            return
        other = f"f{self.random.randrange(self.functions)}"
        self.emit(f"mov.u64 %a1, {target}; mov.u64 %a2, {other}; selp.b64 %a1, %a1, %a2, {self.condition()};")
        self.emit(f"{guard}call ({self.register()}), %a1, ({self.register()}, {self.register()}), prototype;")

    # -- control

    def branch(self, scope: Scope, depth: int) -> None:
        number, uniform = self.fresh(), self.random.random() < 0.25
        condition = self.condition(uniform=uniform)
        inner, other = Scope(scope.together and uniform), Scope(scope.together and uniform)
        if self.kernel and scope.together and not uniform:
            inner, other = Scope(False, f"%m{number}"), Scope(False, f"%n{number}")
            self.emit(f"vote.sync.ballot.b32 %n{number}, {condition}, -1; not.b32 %m{number}, %n{number};")
        self.emit(f"@{condition} bra else{number};")
        self.statements(self.random.randrange(1, 5), inner, depth + 1)
        if self.random.random() < 0.5:
            self.emit(f"bra end{number};")
            self.lines.append(f"else{number}:")
            self.statements(self.random.randrange(1, 5), other, depth + 1)
        else:
            self.lines.append(f"else{number}:")
        self.lines.append(f"end{number}:")

    def loop(self, scope: Scope, depth: int) -> None:
        number, uniform = self.fresh(), self.random.random() < 0.4
        if uniform:
            self.emit(f"mov.u32 %c{number}, {self.random.randrange(1, 4)};")
        else:
            self.emit(f"and.b32 %c{number}, {self.register()}, {self.random.choice([1, 3, 7])};")
        self.lines.append(f"again{number}:")
        inside = Scope(scope.together and uniform)
        self.statements(self.random.randrange(1, 5), inside, depth + 1)
        if not uniform and self.random.random() < 0.4:
            self.emit(f"@{self.condition()} bra out{number};")
            self.statements(self.random.randrange(1, 3), inside, depth + 1)
        self.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.gt.s32 %p{number}, %c{number}, 0; @%p{number} bra again{number};")
        self.lines.append(f"out{number}:")

    def graph(self, depth: int) -> None:
        """Blocks that go to each other, in no order, until the fuel is used up; loops may have several entries."""
        number, count = self.fresh(), self.random.randrange(2, 5)
        self.emit(f"mov.u32 %c{number}, {self.random.randrange(3, 9)};")
        self.emit(f"@{self.condition()} bra node{number}_{self.random.randrange(count)};")
        for node in range(count):
            self.lines.append(f"node{number}_{node}:")
            self.statements(self.random.randrange(0, 3), Scope(False), depth + 2)
            self.emit(f"sub.s32 %c{number}, %c{number}, 1; setp.lt.s32 %p{number}, %c{number}, 0; @%p{number} bra done{number};")
            self.emit(f"@{self.condition()} bra node{number}_{self.random.randrange(count)};")
        self.lines.append(f"done{number}:")

    # -- threads together

    def exchange(self) -> None:
        """A word of each thread, for another one of the block to read."""
        barrier = self.random.choice(["bar.sync 0;", "barrier.sync 1;", "barrier.sync.aligned 2;"])
        source = self.random.choice(
            ["xor.b32 %x2, %t2, 1;", "add.u32 %x2, %t2, 5;", f"and.b32 %x2, {self.register()}, 127;", "sub.u32 %x2, 127, %t2;"]
        )
        self.emit(f"shl.b32 %x1, %t2, 2; mov.u32 %x3, words; add.u32 %x1, %x1, %x3; st.shared.u32 [%x1], {self.register()};")
        self.emit(barrier)
        self.emit(f"{source} and.b32 %x2, %x2, 127; shl.b32 %x2, %x2, 2; add.u32 %x2, %x2, %x3;")
        self.emit(f"ld.shared.u32 {self.register()}, [%x2];")
        self.emit(barrier)

    def vote_barrier(self) -> None:
        condition = self.condition()
        if self.random.random() < 0.5:
            self.emit(f"bar.red.popc.u32 {self.register()}, 3, {condition};")
        else:
            result = f"%p{self.fresh()}"
            self.emit(f"bar.red.{self.random.choice(['and', 'or'])}.pred {result}, 3, {condition};")
            self.emit(f"selp.b32 {self.register()}, 1, 0, {result};")

    def collective(self, members: str) -> None:
        kind = self.random.randrange(5)
        if kind == 0:
            self.emit(f"vote.sync.ballot.b32 {self.register()}, {self.condition()}, {members};")
        elif kind == 1:
            result = f"%p{self.fresh()}"
            self.emit(f"vote.sync.{self.random.choice(['all', 'any', 'uni'])}.pred {result}, {self.condition()}, {members};")
            self.emit(f"selp.b32 {self.register()}, 5, 9, {result};")
        elif kind == 2:
            operation = self.random.choice(["add.u32", "min.s32", "max.u32", "xor.b32", "and.b32"])
            self.emit(f"redux.sync.{operation} {self.register()}, {self.register()}, {members};")
        elif kind == 3:
            self.emit(f"and.b32 %x1, {self.register()}, 3; match.any.sync.b32 {self.register()}, %x1, {members};")
        else:
            self.emit(f"bar.warp.sync {members};")

    def shuffle(self) -> None:
        """Only where every lane is there: what an absent one gives is not defined."""
        width, height, depth = self.block
        if self.exited or width * height * depth % 32:
            return
        mode = self.random.choice(["idx", "up", "down", "bfly"])
        amount = self.random.choice([str(self.random.randrange(32)), self.register()])
        control = {"up": "0"}.get(mode, self.random.choice(["31", "0x181f"]))
        self.emit(f"shfl.sync.{mode}.b32 {self.register()}|%p{self.fresh()}, {self.register()}, {amount}, {control}, -1;")
        self.emit(f"selp.b32 {self.register()}, {self.register()}, {self.register()}, %p{self.number};")

    def exit(self) -> None:
        if self.random.random() < 0.5:
            self.exited = True
            self.emit(f"@{self.condition()} exit;")


def declarations(writer: Writer) -> str:
    count = writer.number + 1
    return (
        f"  .reg .b32 %r<{REGISTERS}>, %x<4>, %t<3>, %u<2>, %c<{count}>, %m<{count}>, %n<{count}>, %all;\n"
        f"  .reg .b64 %d<{WIDE}>, %a<4>, %in, %out, %sums, %own, %rows; .reg .f32 %f<{FLOATS}>; .reg .pred %p<{count}>;\n"
        "  .local .align 16 .b8 kept[32];\n  prototype: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);\n"
    )


NAME = re.compile(r"[%\w]+")
KEPT = "  st.local.v4.u32 [kept], {0, 1, 2, 3}; st.local.v4.u32 [kept+16], {4, 5, 6, 7};"
FILL = """
  add.u32 %x0, %t2, START; and.b32 %x0, %x0, 127; shl.b32 %x1, %x0, 2; mov.u32 %x3, words; add.u32 %x1, %x1, %x3;
  st.shared.u32 [%x1], %x0;"""


def starts(body: str) -> str:
    """The first values of what a body uses."""
    used = set(NAME.findall(body))
    values = {f"%r{i}": f"mov.u32 %r{i}, {i * 0x9E3779B1 & 0xFFFFFFFF};" for i in range(REGISTERS)}
    values |= {f"%f{i}": f"mov.f32 %f{i}, 0f3F8{i}0000;" for i in range(FLOATS)}
    values |= {f"%d{i}": f"mov.u64 %d{i}, {i * 77};" for i in range(WIDE)}
    return "\n".join([*(f"  {text}" for name, text in values.items() if name in used), *([KEPT] if "kept" in used else [])])


def places(grid: Extent, block: Extent, general: bool) -> dict[str, str]:
    """How a kernel computes what is in its registers, each from those before; ``general``: for every launch, not only its own.

    ``t0`` is the thread's x, ``t2`` its number in the block, ``t1`` in the grid of ``all``; ``own`` are its words of the output,
    ``rows`` those behind."""
    flat, single = block[1:] == (1, 1) and not general, grid == (1, 1, 1) and not general
    size, count = math.prod(block), math.prod(grid)
    threads = "mov.u32 %x2, %ntid.y; mul.lo.u32 %x2, %x2, %x1; mov.u32 %x3, %ntid.z; mul.lo.u32 %x3, %x3, %x2;"
    in_block = f"""mov.u32 %t2, %tid.x; mov.u32 %x0, %tid.y; mov.u32 %x1, %ntid.x; mad.lo.u32 %t2, %x0, %x1, %t2;
  mov.u32 %x0, %tid.z; {threads} mad.lo.u32 %t2, %x0, %x2, %t2;"""
    in_grid = f"""mov.u32 %x1, %ntid.x; {threads} mov.u32 %x0, %ctaid.y; mov.u32 %x1, %nctaid.x; mov.u32 %x2, %ctaid.x;
  mad.lo.u32 %x0, %x0, %x1, %x2; mad.lo.u32 %t1, %x0, %x3, %t2;"""
    everything = f"""mov.u32 %x1, %ntid.x; {threads} mov.u32 %x0, %nctaid.x; mov.u32 %x1, %nctaid.y; mul.lo.u32 %x0, %x0, %x1;
  mul.lo.u32 %all, %x0, %x3;"""
    return {
        "%in": "ld.param.u64 %in, [in];", "%out": "ld.param.u64 %out, [out];", "%sums": "ld.param.u64 %sums, [sums];",
        "%u0": "ld.param.u32 %u0, [n];", "%u1": "mov.u32 %u1, %ctaid.x;", "%t0": "mov.u32 %t0, %tid.x;",
        "%t2": "mov.u32 %t2, %tid.x;" if flat else in_block, "%t1": "mov.u32 %t1, %t2;" if single else in_grid,
        "%own": f"mul.wide.u32 %own, %t1, {4 * PLACES}; add.u64 %own, %own, %out;",
        "%all": everything if general else f"mov.u32 %all, {size * count};",
        "%rows": f"mul.wide.u32 %rows, %all, {4 * PLACES}; add.u64 %rows, %rows, %out;",
    }  # fmt: skip


def varied(body: str) -> list[str]:
    """Registers that differ from thread to thread."""
    used = set(NAME.findall(body))
    loaded = "mul.wide.u32 %a0, %t1, 8; add.u64 %a0, %a0, %in; ld.global.v2.u32 {%r1, %r2}, [%a0];"
    lines = [loaded] if {"%r1", "%r2"} & used else []
    lines += ["mov.u32 %r3, %t2;"] if "%r3" in used else []
    return ["  " + line for line in lines]


def prologue(body: str, grid: Extent, block: Extent, general: bool) -> str:
    """What comes before a kernel's body: the values that it uses."""
    fill = "".join(FILL.replace("START", str(start)) for start in range(0, 128, math.prod(block))) + "\n  bar.sync 0;"
    later = "\n".join([*varied(body), fill if "words" in NAME.findall(body) else "", body])
    lines: list[str] = []
    for name, text in reversed(places(grid, block, general).items()):
        if name in NAME.findall(later):
            lines.insert(0, "  " + text)
            later += text
    return "\n".join([starts(body), *lines, *varied(body)]) + (fill if "words" in NAME.findall(body) else "")


def epilogue(body: str) -> str:
    """The thread's values, to its words of the output."""
    used = set(NAME.findall(body))
    lines = [f"xor.b32 %r{i % 2}, %r{i % 2}, %r{i};" for i in range(2, REGISTERS) if f"%r{i}" in used]
    lines += [f"cvt.u32.u64 %x3, %d{i}; xor.b32 %r0, %r0, %x3;" for i in range(WIDE) if f"%d{i}" in used]
    lines += [f"mov.b32 %x{i}, %f{i}; st.global.u32 [%own+{8 + 4 * i}], %x{i};" for i in range(2) if f"%f{i}" in used]
    return "\n".join("  " + line for line in [*lines, "st.global.v2.u32 [%own], {%r0, %r1};"])


def function(rng: random.Random, number: int, known: int) -> str:
    """A device function of two words; it may call those before it, and itself a few times."""
    writer = Writer(rng, (32, 1, 1), known, budget=8, kernel=False)
    writer.statements(6, Scope(False), 1)
    body = "\n".join(writer.lines)
    again = ""
    if rng.random() < 0.3:
        again = f"""
  and.b32 %x0, %r0, 3; setp.eq.u32 %p0, %x0, 0; @%p0 bra bottom; sub.u32 %x0, %x0, 1; call (%r2), f{number}, (%x0, %r1);
bottom:"""
    return f"""
.func (.param .b32 result) f{number}(.param .b32 a, .param .b32 b)
{{
{declarations(writer)}{starts(body + "%r2")}
  ld.param.u32 %r0, [a]; ld.param.u32 %r1, [b];{again}
{body}
  xor.b32 %r0, %r0, %r2; add.u32 %r0, %r0, %r1; st.param.b32 [result], %r0; ret;
}}
"""


def program(seed: int) -> Program:
    """The kernel of a seed."""
    rng = random.Random(seed)
    grid, block = rng.choice(GRIDS), rng.choice(BLOCKS)
    functions = rng.choice([0, 0, 1, 2])
    texts = [function(rng, number, number) for number in range(functions)]
    writer = Writer(rng, block, functions, budget=rng.choice(BUDGETS))
    writer.statements(40, Scope(True), 0)
    body = "\n".join(writer.lines)
    body += "\n" + epilogue(body + "%r0 %r1")
    kernel = f"""
.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 sums, .param .u32 n)
{{
  .shared .align 4 .b8 words[512];
{declarations(writer)}{prologue(body, grid, block, rng.random() < 0.2)}
{body}
  ret;
}}
"""
    return Program("\n".join([HEADER, *texts, kernel]), grid, block)
