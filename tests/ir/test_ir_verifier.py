"""The verifier of the typed IR: each kind of breakage, planted by hand, is found and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ptxemu.cli import run
from ptxemu.driver import compile, pipeline
from ptxemu.ir.graph import Block, Graph, Phis
from ptxemu.ir.ops import Imm, Op
from ptxemu.ir.types import U32
from ptxemu.irtext.parser import parse_ir
from ptxemu.irtext.verifier import InvalidIR, verify

GRAPH = """\
module 8.0, sm_80

entry @k                                          // 1
  formal @n: u64 at 0
  local @spot: b32
{
entry:
  %a#0:b64 = ld.param.u64 [@n]                    // 2
  %t#0:b32 = mov.u32 %tid.x                       // 3
  %p#0:pred = setp.gt.u32 %t#0, 100               // 4
  @%p#0 %t#1:b32 = mov.u32 100 else %t#0          // 5
  jump loop
loop:
  %i#0:b32 = phi entry 0, latch %i#1
  %i#1:b32 = add.u32 %i#0, 1                      // 6
  %q#0:pred = setp.lt.u32 %i#1, %t#1              // 7
  branch %q#0, latch, out
latch:
  jump loop                                       // 8
out:
  %r#0:b32 = phi loop %i#1
  suld.b.1d.v2.b32.trap %x:b32
  st.local.v2.u32 [@spot], {%r#0, 7}              // 9
  bar.sync 0                                      // 10
  jump last
last:
  trap                                            // 11
  end
}
""".replace("  suld.b.1d.v2.b32.trap %x:b32\n", "")

LIST = """\
module 8.0, sm_80

entry @k                                          // 1
flat {
  @%p:pred bra -> done                            // 2
  %t:b32 = add.u32 %t, 1                          // 3
done:
  exit                                            // 4
}
"""

CHANGES = [
    # ops against their rows
    ("add.u32 %i#0, 1", "add/0{type=u99}(u32, u32 -> u32) %i#0, 1", 6, "'u99' is not a value of the modifier 'type'"),
    ("setp.gt.u32 %t#0, 100", "setp/0{type=u32}(u32, u32 -> pred) %t#0, 100", 4, "the modifier 'cmp' is missing"),
    ("add.u32 %i#0, 1", "add.u32(u32, u32, u32 -> u32) %i#0, 1, 2", 6, "1 results and 3 sources do not fit the row 'add type="),
    ("add.u32 %i#0, 1", "add.u32(u32 -> u32) %i#0, 1:u32", 6, "2 sources have 1 types"),
    ("add.u32 %i#0, 1", "add.u32(u32, u32) %i#0, 1", 6, "1 results have 0 types"),
    ("add.u32 %i#0, 1", "add.u32(s32, u32 -> u32) %i#0, 1", 6, "the types are (s32, u32 -> u32), but the row gives (u32, "),
    ("ld.param.u64 [@n]", "ld.param.u64 @n", 2, "operand 'a' must be an address"),
    ("add.u32 %i#0, 1", "add.u32 [%a#0], 1", 6, "operand 'a' must be a value"),
    ("bar.sync 0", "pmevent %t#1", 10, "operand 'immA' must be a constant"),
    ("bar.sync 0", "%g:b32 = suq.width.b32 %tid.x", 10, "operand 's' must be a handle"),
    # operands
    ("%a#0:b64 = ld", "%a#0:b32 = ld", 2, "'%a#0' of type b32 cannot hold a value of type u64"),
    ("setp.lt.u32 %i#1, %t#1", "setp.lt.u32 %i#1, %p#0", 7, "'%p#0' of type pred cannot hold a value of type u32"),
    ("{%r#0, 7}", "{%q#0, 7}", 9, "'%q#0' of type pred cannot hold a value of type u32"),
    ("[@spot]", "[%p#0]", 9, "'%p#0' of type pred cannot be an address"),
    # guards
    ("@%p#0 %t#1", "@%t#0 %t#1", 5, "the guard has type b32"),
    (" else %t#0 ", "           ", 5, "1 results have 0 old values"),
    (" else %t#0", " else _", 5, "'%t#1' has no old value"),
    (" else %t#0", " else %a#0", 5, "the old value of '%t#1' has type b64, not b32"),
    ("%i#1:b32 = add.u32 %i#0, 1", "%i#1:b32 = add.u32 %i#0, 1 else %i#0", 6, "there are old values without a guard"),
    # blocks
    ("trap ", "exit ", 11, "a jump or exit is a terminator in a graph"),
    ("bar.sync 0", "trap      ", 10, "nothing may follow this op"),
    ("trap   ", "trap\n  bar.sync 0", 0, "nothing may follow this op"),
    ("branch %q#0", "branch %t#1", 0, "the condition has type b32"),
    ("branch %q#0, latch, out", "switch %q#0, latch, out table 0 1", 0, "a computed branch needs an integer register"),
    ("branch %q#0, latch, out", "switch %t#1, latch, out table 0 0", 0, "the table of a computed branch has the num"),
    ("phi entry 0, latch %i#1", "phi entry 0", 0, "the phi of '%i#0' has values for entry"),
    ("phi entry 0, latch", "phi entry 0:u64, latch", 0, "the phi of '%i#0' has a value of type u64 from 'entry'"),
    # SSA
    ("%i#1:b32 = add.u32 %i#0, 1", "%i#1:b32 = mov.u32 0\n  %i#1:b32 = add.u32 %i#0, 1", 6, "'%i#1' is defined twice"),
    ("%r#0:b32 = phi", "%t#0:b32 = phi loop 0\n  %r#0:b32 = phi", 0, "'%t#0' is defined twice"),
    ("add.u32 %i#0, 1", "add.u32 %i#0, %z:b32", 6, "'%z' is never defined"),
    ("setp.gt.u32 %t#0, 100", "setp.gt.u32 %t#1, 100", 4, "'%t#1' is read before its definition"),
    ("setp.gt.u32 %t#0, 100", "setp.gt.u32 %i#1, 100", 4, "the definition of '%i#1' does not dominate its use"),
    ("branch %q#0", "branch %z:pred", 0, "'%z' is never defined"),
    ("phi entry 0, latch %i#1", "phi entry %i#1, latch 0", 0, "does not dominate its use, for the phi of '%i#0'"),
]  # fmt: skip


def test_the_program_without_breakage_is_well_formed() -> None:
    for text, after in ((GRAPH, "ssa"), (LIST, "inline")):
        verify(*parse_ir(text), after)


def test_a_predicate_is_a_byte_where_it_is_a_parameter() -> None:
    verify(*parse_ir(GRAPH.replace("trap  ", "%b:pred = ld.param.b8(pred -> pred) [@n]\n  trap")), "ssa")


def test_a_guard_that_nothing_writes_is_a_constant() -> None:
    verify(*parse_ir(GRAPH.replace("@%p#0", "@0")), "ssa")


def message(text: str, after: str, change: Callable[[Graph], None] = lambda graph: None) -> str:
    """What the verifier says of a text after a pass, once ``change`` has changed its graph."""
    module, bodies = parse_ir(text)
    if isinstance(graph := bodies[0].code, Graph):
        change(graph)
    with pytest.raises(InvalidIR) as caught:
        verify(module, bodies, after)
    return str(caught.value)


@pytest.mark.parametrize(("old", "new", "line", "problem"), CHANGES)
def test_a_change_of_the_graph_is_found(old: str, new: str, line: int, problem: str) -> None:
    assert GRAPH.count(old) == 1
    found = message(GRAPH.replace(old, new), "ssa")
    assert found.startswith("after pass 'ssa': function 'k', block '")
    assert problem in found
    assert not line or f":{line}: " in found


def block(graph: Graph, name: str) -> Block:
    return next(block for block in graph.blocks if block.name == name)


def op(graph: Graph, name: str, index: int = 0) -> Op:
    return block(graph, name).ops[index]


def elsewhere(graph: Graph) -> None:
    block(graph, "latch").succs = [Block("elsewhere")]


def forgotten(graph: Graph) -> None:
    block(graph, "out").preds = []


def doubled(graph: Graph) -> None:
    latch = block(graph, "latch")
    latch.succs *= 2
    latch.cond = block(graph, "loop").cond
    latch.succs[0].preds.append(latch)


def third(graph: Graph) -> None:
    loop, last = block(graph, "loop"), block(graph, "last")
    loop.succs = [*loop.succs, last]
    last.preds.append(loop)


def unconditional(graph: Graph) -> None:
    block(graph, "loop").cond = None


def too_large(graph: Graph) -> None:
    op(graph, "loop").srcs = (Imm(1 << 32, U32), Imm(1, U32))


def no_such_special(graph: Graph) -> None:
    op(graph, "entry", 1).srcs = (type(op(graph, "entry", 1).srcs[0])("tid.w"),)


def not_declared(graph: Graph) -> None:
    graph.variables.clear()


def labelled(graph: Graph) -> None:
    op(graph, "loop").labels = ("loop",)


GRAPHS = [
    (elsewhere, "the successor 'elsewhere' is not in the graph"),
    (forgotten, "the predecessors are not none"),
    (doubled, "two edges lead to one block"),
    (third, "a branch has two successors, not 3"),
    (unconditional, "a branch needs a condition, and nothing else has one"),
    (too_large, "the constant 4294967296 does not fit u32"),
    (no_such_special, "there is no special register '%tid.w'"),
    (not_declared, "'spot' is not declared in this function"),
    (labelled, "a jump or exit is a terminator in a graph"),
]


@pytest.mark.parametrize(("change", "problem"), GRAPHS)
def test_what_cannot_be_written_is_found(change: Callable[[Graph], None], problem: str) -> None:
    assert problem in message(GRAPH, "ssa", change)


def test_a_function_of_another_module_is_not_declared() -> None:
    text = GRAPH.replace("entry @k", "declare func @f\n\nentry @k").replace("bar.sync 0 ", "%f:b64 = mov.u64 @f ")
    verify(*parse_ir(text), "ssa")
    module, bodies = parse_ir(text)
    del module.functions["f"]
    with pytest.raises(InvalidIR, match="'f' is not declared in this function"):
        verify(module, bodies, "ssa")


def test_before_ssa_there_are_no_phis_and_no_old_values() -> None:
    assert "there are old values before SSA form" in message(GRAPH, "params")
    assert "there are phis before SSA form" in message(GRAPH.replace(" else %t#0", ""), "params")


LISTS = [
    ("-> done", "-> nowhere", "there is no label 'nowhere'"),
    ("flat {\n", "flat {\ndone:\n", "the label 'done' stands twice"),
    ("%t:b32 = add.u32 %t", "%t:b32, %u:b32 = add.u32 %t", "operand 'd' must be a register"),
    ("add.u32 %t, 1", "add.u32 %t, {1, 2}", "operand 'b' must be a value"),
]


@pytest.mark.parametrize(("old", "new", "problem"), LISTS)
def test_a_change_of_the_list_is_found(old: str, new: str, problem: str) -> None:
    found = message(LIST.replace(old, new), "inline")
    assert found.startswith("after pass 'inline': function 'k'")
    assert problem in found


LOOPS = [
    ("latch:\n  jump loop ", "latch:\n  branch %p#0, loop, out ", "the loop needs one latch that only jumps"),
    ("  branch %q#0, latch, out", "  switch %i#1, latch, out, loop table 0 1 2", "the loop needs one latch that only jumps"),
    ("else %t#0          // 5\n  jump loop", "else %t#0\n  branch %p#0, loop, last", "the loop needs one entry edge"),
    (
        "else %t#0          // 5\n  jump loop",
        "else %t#0\n  branch %p#0, pre, out\npre:\n  jump loop",
        "the exit 'out' is reached from outside",
    ),
    ("else %t#0          // 5\n  jump loop", "else %t#0\n  branch %p#0, loop, latch", "the graph is not reducible"),
]


@pytest.mark.parametrize(("old", "new", "problem"), LOOPS)
@pytest.mark.parametrize("after", ["loops", "copies"])
def test_loops_have_their_canonical_form(old: str, new: str, problem: str, after: str) -> None:
    assert GRAPH.count(old) == 1
    text = GRAPH.replace(old, new).replace("phi entry 0, latch %i#1", "phi entry 0, latch 0")
    module, bodies = parse_ir(text)
    graph = bodies[0].code
    assert isinstance(graph, Graph)
    for found in graph.blocks:  # a phi has a value for each of the new edges
        found.phis.args = {pred: [Imm(0, dst.type) for dst in found.phis.dsts] for pred in found.preds}
    if after == "loops":
        plain(graph)
    with pytest.raises(InvalidIR, match=problem):
        verify(module, bodies, after)


def test_all_phis_of_a_block_have_values() -> None:
    module, bodies = parse_ir(GRAPH)
    graph = bodies[0].code
    assert isinstance(graph, Graph)
    for column in block(graph, "loop").phis.args.values():
        column.pop()
    with pytest.raises(InvalidIR, match="1 phis have 0 values for 'entry'"):
        verify(module, bodies, "copies")


def plain(graph: Graph) -> None:
    """Without phis and old values, as before SSA form."""
    for found in graph.blocks:
        found.phis = Phis()
        for one in found.ops:
            one.old = ()


KEPT = GRAPH.replace("  bar.sync 0 ", "  %k:b32 = _keep(b32 -> b32) %r#0\n  %k:b32 = _keep(b32 -> b32) %t#1\n  bar.sync 0 ")


def test_registers_that_lanes_keep_are_written_at_several_places() -> None:
    verify(*parse_ir(KEPT.replace("phi entry 0, ", "phi entry %k, ")), "lane-private")
    assert "'%k' is also kept for each lane" in message(KEPT.replace("bar.sync 0", "%k:b32 = mov.u32 1"), "lane-private")


PTX = """
.version 7.8
.target sm_70
.address_size 64
.entry k(.param .u32 n)
{
    .reg .u32 %r<3>;
    ld.param.u32 %r1, [n];
    add.u32 %r2, %r1, 1;
    st.local.u32 [0], %r2;
    exit;
}
"""


def break_ssa(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pass ``ssa`` forget a definition."""
    construct = pipeline.construct

    def broken(bodies: pipeline.Bodies) -> None:
        for graph in bodies.graphs:
            construct(graph)
            graph.entry.ops = [one for one in graph.entry.ops if one.opcode != "ld"]

    steps = tuple(pipeline.Pass("ssa", broken) if step.name == "ssa" else step for step in pipeline.TO_SSA)
    monkeypatch.setattr(pipeline, "TO_SSA", steps)


FOUND = "after pass 'ssa': function 'k', block 'entry', {}:9: '%r1#0' is never defined\n  %r2#0:u32 = add.u32 %r1#0, 1"


def test_tests_of_the_ir_verify_after_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    break_ssa(monkeypatch)
    module = compile.front(PTX, "k.ptx")
    with pytest.raises(InvalidIR) as caught:
        compile.kernel(module, "k")
    assert str(caught.value).partition("  //")[0].rstrip() == FOUND.format("k.ptx")
    monkeypatch.setenv("PTXEMU_VERIFY", "0")
    pipeline.prepare(module, module.entries[0], "row")


def test_compile_verifies_if_it_is_asked_to(monkeypatch: pytest.MonkeyPatch, tmp_path, capsys) -> None:
    monkeypatch.setenv("PTXEMU_VERIFY", "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.ptx").write_text(PTX)
    for kind in ("ir", "asm"):
        assert run(["compile", "k.ptx", "--emit", kind, "--verify", "-o", "out"]) == 0
    break_ssa(monkeypatch)
    for kind in ("ir", "asm"):
        assert run(["compile", "k.ptx", "--emit", kind, "--verify"]) == 70
        assert "'%r1#0' is never defined" in capsys.readouterr().err
