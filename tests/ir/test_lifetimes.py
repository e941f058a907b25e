"""Lifetimes in linear order, and the places that values share."""

from __future__ import annotations

from itertools import combinations

import pytest

from ptxemu.analysis.lifetimes import Lifetime, Lifetimes, place
from ptxemu.analysis.linear import Structure
from ptxemu.driver import compile
from ptxemu.ir.graph import Block, Graph

NESTED = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<9>; .reg .b64 %d; .reg .pred %q<4>;
  ld.param.u64 %d, [p];
  mov.u32 %r0, %tid.x;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
OUTER:
  mul.lo.u32 %r3, %r1, %r0;
  mov.u32 %r4, 0;
INNER:
  add.u32 %r5, %r3, %r4;
  add.u32 %r2, %r2, %r5;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %q1, %r4, %r0;
  @%q1 bra INNER;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %q2, %r1, %r0;
  @%q2 bra OUTER;
  st.global.u32 [%d], %r2;
  ret;
}
"""


def graph_of(text: str) -> Graph:
    module = compile.front(text)
    return compile.prepare(module, module.entries[0], "row").graphs[0]


def spans(structure: Structure) -> dict[Block, tuple[int, int]]:
    """The positions of the blocks: one for each op, and one for each end."""
    found, position = {}, 0
    for block in structure.order:
        found[block] = position, position + len(block.ops) + 1
        position += len(block.ops) + 2
    return found


def test_what_comes_into_a_loop_lives_to_its_end_and_what_is_handed_over_from_its_start():
    structure = Structure(graph_of(NESTED))
    lifetimes, where = Lifetimes(structure), spans(structure)
    loops = list(dict.fromkeys(structure.loops.values()))
    assert len(loops) == 2
    for loop in loops:
        first = min(where[block][0] for block in loop.blocks)
        last = max(where[block][1] for block in loop.blocks)
        for value, life in lifetimes.of.items():
            assert not (life.first < first <= life.last < last), value
        for block, life in lifetimes.handed.items():
            inside = first <= life.first and life.last <= last
            apart = life.last < first or last < life.first
            assert inside or apart or (life.first <= first and last <= life.last), block


def test_what_a_loop_reads_from_before_lives_to_its_end():
    structure = Structure(graph_of(NESTED))
    lifetimes, where = Lifetimes(structure), spans(structure)
    inner = min(structure.loops.values(), key=lambda loop: len(loop.blocks))
    end = max(where[block][1] for block in inner.blocks)
    products = [op.dsts[0] for block in structure.order for op in block.ops if op.opcode == "mul"]
    assert [lifetimes.of[product].last >= end for product in products] == [True]


@pytest.mark.parametrize("seed", range(20))
def test_values_that_live_at_once_lie_apart(seed):
    import random

    draw = random.Random(seed)
    values = []
    for number in range(60):
        first = draw.randrange(100)
        values.append((number, Lifetime(first, first + draw.randrange(30)), draw.choice((64, 128, 256))))
    offsets, end = place(values, start=32)
    for (a, one, size), (b, other, extent) in combinations(values, 2):
        if one.first <= other.last and other.first <= one.last:
            assert offsets[a] + size <= offsets[b] or offsets[b] + extent <= offsets[a]
    assert all(offsets[value] >= 32 and offsets[value] + size <= end for value, _, size in values)


def test_places_are_used_again():
    values = [(number, Lifetime(2 * number, 2 * number + 1), 128) for number in range(1000)]
    assert place(values, start=0)[1] == 128


def test_a_value_lives_as_long_as_all_that_are_kept_where_it_is():
    structure = Structure(graph_of(NESTED))
    alone = Lifetimes(structure)
    phi = next(phi for block in structure.order if block.succs == [] for phi in block.phis)
    (given,) = set(phi.args.values())
    together = Lifetimes(structure, {phi: None, phi.dst: given})
    assert phi not in together.of and phi.dst not in together.of
    assert together.of[given].first <= alone.of[given].first and together.of[given].last == alone.of[phi.dst].last
