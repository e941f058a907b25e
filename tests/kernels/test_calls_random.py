"""Random programs of functions that call each other and themselves, directly and through a table, against Python."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from tests.support.kernel_tools import HEADER, kernel, run

FUNCTIONS = 4
THREADS = 70
MASK = 0xFFFFFFFF
Statement = (
    tuple  # ("add", k) ("mix", k) ("if", mask, then, else) ("loop", n, body) ("call", j) ("pointer",) ("return", m) ("exit", m)
)


class Exit(Exception):
    """A thread leaves the kernel."""


class Return(Exception):
    """A function returns early."""


def body(random: np.random.Generator, level: int, calls: list[int], in_loop: bool = False) -> list[Statement]:
    """A list of statements; ``calls`` counts down those that may still be made."""
    found: list[Statement] = []
    for _ in range(int(random.integers(2, 5))):
        kind = str(random.choice(["add", "mix", "if", "loop", "call", "pointer", "return", "exit"]))
        if (kind in ("if", "loop") and level == 0) or (kind in ("call", "pointer") and (calls[0] == 0 or in_loop)):
            kind = "add"
        if kind == "if":
            inner = [body(random, level - 1, calls, in_loop) for _ in range(2)]
            found.append((kind, 1 << int(random.integers(0, 5)), *inner))
        elif kind == "loop":
            found.append((kind, int(random.integers(1, 4)), body(random, level - 1, calls, True)))
        elif kind in ("call", "pointer"):
            calls[0] -= 1
            found.append((kind, int(random.integers(0, FUNCTIONS))))
        elif kind in ("return", "exit"):
            found.append((kind, 31 if kind == "return" else 127))
        else:
            found.append((kind, int(random.integers(1, 1 << 32))))
    return found


# ---------------------------------------------------------------- in Python


def call(program: list[list[Statement]], index: int, depth: int, x: int) -> int:
    if depth == 0:
        return x ^ index
    state = [x]
    with suppress(Return):
        execute(program, program[index], depth, state)
    return state[0]


def execute(program: list[list[Statement]], statements: list[Statement], depth: int, state: list[int]) -> None:
    for kind, *rest in statements:
        x = state[0]
        if kind == "add":
            state[0] = x + rest[0] & MASK
        elif kind == "mix":
            state[0] = (x ^ x >> 7) * (rest[0] | 1) & MASK
        elif kind == "if":
            execute(program, rest[1] if x & rest[0] else rest[2], depth, state)
        elif kind == "loop":
            for _ in range(rest[0] + (x & 1)):
                execute(program, rest[1], depth, state)
        elif kind == "call":
            state[0] = call(program, rest[0], depth - 1, x)
        elif kind == "pointer":
            state[0] = call(program, x % FUNCTIONS, depth - 1, x)
        elif x & rest[0] == 5:
            raise Return if kind == "return" else Exit


# ---------------------------------------------------------------- in PTX


class Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def new(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def add(self, *lines: str) -> None:
        self.lines.extend(lines)

    def function(self, index: int, statements: list[Statement]) -> None:
        self.add(
            f".func (.param .b32 result) f{index} (.param .b32 depth, .param .b32 value)", "{",
            ".reg .b32 %x, %t, %d; .reg .b64 %a; .reg .pred %p;",
            "ld.param.b32 %d, [depth]; ld.param.b32 %x, [value];",
            f"setp.eq.u32 %p, %d, 0; @%p xor.b32 %x, %x, {index}; @%p bra END; sub.u32 %d, %d, 1;",
        )  # fmt: skip
        self.block(statements)
        self.add("END: st.param.b32 [result], %x; ret;", "}")

    def block(self, statements: list[Statement]) -> None:
        for kind, *rest in statements:
            getattr(self, "write_" + kind)(*rest)

    def write_add(self, value: int) -> None:
        self.add(f"add.u32 %x, %x, {value};")

    def write_mix(self, value: int) -> None:
        self.add(f"shr.u32 %t, %x, 7; xor.b32 %x, %x, %t; mul.lo.u32 %x, %x, {value | 1};")

    def write_if(self, mask: int, then: list[Statement], otherwise: list[Statement]) -> None:
        skip, done = self.new("ELSE"), self.new("DONE")
        self.add(f"and.b32 %t, %x, {mask}; setp.eq.u32 %p, %t, 0; @%p bra {skip};")
        self.block(then)
        self.add(f"bra {done};", f"{skip}:")
        self.block(otherwise)
        self.add(f"{done}:")

    def write_loop(self, count: int, statements: list[Statement]) -> None:
        again, counter = self.new("AGAIN"), self.new("%n")
        self.add(f".reg .b32 {counter}; and.b32 {counter}, %x, 1; add.u32 {counter}, {counter}, {count};", f"{again}:")
        self.block(statements)
        self.add(f"sub.u32 {counter}, {counter}, 1; setp.ne.u32 %p, {counter}, 0; @%p bra {again};")

    def write_call(self, index: int) -> None:
        self.add(f"call (%x), f{index}, (%d, %x);")

    def write_pointer(self, _: int) -> None:
        prototype = self.new("P")
        self.add(f"rem.u32 %t, %x, {FUNCTIONS}; mul.wide.u32 %a, %t, 8; .reg .b64 {prototype}b; mov.u64 {prototype}b, table;")
        self.add(f"add.u64 %a, %a, {prototype}b; ld.global.u64 %a, [%a];")
        self.add(f"{prototype}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _);")
        self.add(f"call (%x), %a, (%d, %x), {prototype};")

    def write_return(self, mask: int) -> None:
        self.add(f"and.b32 %t, %x, {mask}; setp.eq.u32 %p, %t, 5; @%p bra END;")

    def write_exit(self, mask: int) -> None:
        self.add(f"and.b32 %t, %x, {mask}; setp.eq.u32 %p, %t, 5; @%p exit;")


def source(program: list[list[Statement]]) -> str:
    writer = Writer()
    declared = [f".func (.param .b32 result) f{i} (.param .b32 depth, .param .b32 value);" for i in range(len(program))]
    writer.add(*declared, f".global .u64 table[] = {{{', '.join(f'f{i}' for i in range(len(program)))}}};")
    for index, statements in enumerate(program):
        writer.function(index, statements)
    start = """
  ld.param.u64 %rd1, [out]; ld.param.u32 %r3, [depth]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
  mul.lo.u32 %r2, %r1, 0x9e3779b1; and.b32 %r4, %r1, 1; sub.u32 %r3, %r3, %r4; call (%r2), f0, (%r3, %r2);
  st.global.u32 [%rd2], %r2; ret;
"""
    return HEADER + "\n".join(writer.lines) + kernel(start, ".param .u64 out, .param .u32 depth").removeprefix(HEADER)


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int) -> None:
    random = np.random.default_rng(seed)
    program = [body(random, 2, [3]) for _ in range(FUNCTIONS)]
    out = np.zeros(THREADS, np.uint32)
    run(source(program), 1, THREADS, out, 5)
    expected = []
    for thread in range(THREADS):
        try:
            expected.append(call(program, 0, 5 - thread % 2, thread * 0x9E3779B1 & MASK))
        except Exit:
            expected.append(0)
    assert out.tolist() == expected
