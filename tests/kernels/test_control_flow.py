"""Random control flow: whatever the graph (nested, unstructured, irreducible), every lane must follow its own path.

Each kernel is a random graph of blocks over a few registers; a per-thread interpreter of the same graph is the oracle.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis import waiting

REGISTERS = 5
MASK = 0xFFFFFFFF
OPERATIONS = {
    "add.u32": lambda a, b: (a + b) & MASK,
    "sub.u32": lambda a, b: (a - b) & MASK,
    "xor.b32": lambda a, b: a ^ b,
    "mul.lo.u32": lambda a, b: (a * b) & MASK,
    "min.u32": min,
}


@dataclass
class Node:
    """Ops as (name, destination, source, source register or constant); then how the block ends."""

    ops: list[tuple[str, int, int, int, bool]]
    kind: str  # jump, branch, switch, exit
    targets: list[int]
    register: int = 0
    value: int = 0
    guarded: tuple[int, int] | None = None  # a predicated op: (register tested, destination)


@dataclass
class Program:
    nodes: list[Node] = field(default_factory=list)
    fuel: int = 40


def random_program(rng: random.Random) -> Program:
    count = rng.randint(2, 9)
    program = Program(fuel=rng.randint(5, 40))
    for index in range(count):
        ops = [
            (rng.choice(list(OPERATIONS)), rng.randrange(REGISTERS), rng.randrange(REGISTERS),
             rng.randrange(1000) if rng.random() < 0.5 else rng.randrange(REGISTERS), False)
            for _ in range(rng.randint(0, 3))
        ]  # fmt: skip
        ops = [(n, d, a, b, b >= REGISTERS or rng.random() < 0.2) for n, d, a, b, _ in ops]
        kind = rng.choices(["jump", "branch", "switch", "exit"], [3, 8, 1, 1])[0]
        near = rng.random() < 0.5  # mostly forward graphs nest; free ones are irreducible
        edges = {"jump": 1, "branch": 2, "switch": 3, "exit": 0}[kind]
        targets = [min(count - 1, index + rng.randint(1, 3)) if near else rng.randrange(count) for _ in range(edges)]
        guarded = (rng.randrange(REGISTERS), rng.randrange(REGISTERS)) if rng.random() < 0.3 else None
        program.nodes.append(Node(ops, kind, targets, rng.randrange(REGISTERS), rng.randrange(4), guarded))
    return program


def to_ptx(program: Program) -> str:
    lines = []
    for index, node in enumerate(program.nodes):
        lines.append(f"L{index}:")
        lines.append("  mul.lo.u32 %h, %h, 31;")
        lines.append(f"  add.u32 %h, %h, {index + 1};")
        lines.append("  sub.u32 %fuel, %fuel, 1;")
        lines.append("  setp.eq.u32 %p, %fuel, 0;")
        lines.append("  @%p bra DONE;")
        for name, d, a, b, literal in node.ops:
            lines.append(f"  {name} %r{d}, %r{a}, {b if literal else f'%r{b}'};")
        if node.guarded:
            tested, dst = node.guarded
            lines.append(f"  and.b32 %t, %r{tested}, 1;")
            lines.append("  setp.ne.u32 %q, %t, 0;")
            lines.append(f"  @%q add.u32 %r{dst}, %r{dst}, 7;")
        if node.kind == "jump":
            lines.append(f"  bra L{node.targets[0]};")
        elif node.kind == "branch":
            lines.append(f"  and.b32 %t, %r{node.register}, 3;")
            lines.append(f"  setp.eq.u32 %p, %t, {node.value};")
            lines.append(f"  @%p bra L{node.targets[0]};")
            lines.append(f"  bra L{node.targets[1]};")
        elif node.kind == "switch":
            lines.append(f"  rem.u32 %t, %r{node.register}, 3;")
            lines.append(f"T{index}: .branchtargets {', '.join(f'L{t}' for t in node.targets)};")
            lines.append(f"  brx.idx %t, T{index};")
        else:
            lines.append("  st.global.u32 [%out], %h;")
            lines.append("  exit;")
    body = "\n".join(lines)
    setup = "\n".join(f"  mad.lo.u32 %r{r}, %tid, {(r * 7) % 5}, {r * 3 + 1};" for r in range(REGISTERS))
    stores = "\n".join(f"  st.global.u32 [%out+{4 * (r + 1)}], %r{r};" for r in range(REGISTERS))
    return f"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{{
  .reg .b32 %r<{REGISTERS}>; .reg .b32 %tid, %h, %fuel, %t; .reg .b64 %out, %o; .reg .pred %p, %q;
  ld.param.u64 %out, [p];
  mov.u32 %tid, %tid.x;
  mul.wide.u32 %o, %tid, {4 * (REGISTERS + 1)};
  add.u64 %out, %out, %o;
  mov.u32 %h, 0;
  mov.u32 %fuel, {program.fuel};
{setup}
{body}
DONE:
  st.global.u32 [%out], %h;
{stores}
  ret;
}}
"""


def interpret(program: Program, tid: int) -> list[int]:
    regs = [(tid * ((r * 7) % 5) + r * 3 + 1) & MASK for r in range(REGISTERS)]
    h, fuel, at = 0, program.fuel, 0
    while True:
        if at == len(program.nodes):
            break
        node = program.nodes[at]
        h = (h * 31 + at + 1) & MASK
        fuel -= 1
        if fuel == 0:
            break
        for name, d, a, b, literal in node.ops:
            regs[d] = OPERATIONS[name](regs[a], b if literal else regs[b])
        if node.guarded and regs[node.guarded[0]] & 1:
            regs[node.guarded[1]] = (regs[node.guarded[1]] + 7) & MASK
        if node.kind == "jump":
            at = node.targets[0]
        elif node.kind == "branch":
            at = node.targets[0] if regs[node.register] & 3 == node.value else node.targets[1]
        elif node.kind == "switch":
            at = node.targets[regs[node.register] % 3]
        else:
            return [h] + [0] * REGISTERS
    return [h, *regs]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(60))
def test_random_graph(seed: int) -> None:
    compare(random_program(random.Random(seed)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_random_graph_with_independent_lanes(seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The form of kernels whose lanes wait for each other, which these do not."""
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path))
    monkeypatch.setattr(waiting, "needs_independence", lambda linear, spins: True)
    compare(random_program(random.Random(seed)))


def compare(program: Program) -> None:
    threads = 48  # a full warp and a partial one
    out = np.zeros((threads, REGISTERS + 1), dtype=np.uint32)
    ptxemu.loads(to_ptx(program))["k"][1, threads](out)
    expected = np.array([interpret(program, tid) for tid in range(threads)], dtype=np.uint32)
    np.testing.assert_array_equal(out, expected)
