"""What is made of a kernel grows no faster than the kernel: frames, blocks of LLVM IR, code for one instruction; and kernels
with thousands of an instruction run."""

from __future__ import annotations

import re
import struct
import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis.lone_lanes import lone_code
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.device.frames import SMALL, largest_frame
from ptxemu.driver import compile, jit, lowering
from ptxemu.driver.effort import FAST, LONGEST, cost_of
from ptxemu.driver.pipeline import VERIFY_VARIABLE
from ptxemu.lower.core.journal import Journal, Noted
from ptxemu.lower.core.scratch import bytes_of
from ptxemu.lower.functions.function import LARGE_BLOCK
from ptxemu.passes.lone_lanes import single_out
from tests.support.kernel_tools import kernel

ALLOCA = re.compile(r"alloca (?:\[(\d+) x i8\]|(\S.*?)), align")
LABEL = re.compile(r"^[\w.]+:", re.MULTILINE)

START = """
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd6, [texture]; mov.u32 %r0, %tid.x; mov.u32 %r1, 1; mov.u64 %rd2, 3;
  mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; mul.wide.u32 %rd4, %r0, 16; add.u64 %rd4, %rd4, %rd0;
  mul.lo.u32 %r6, %r0, %r0; and.b32 %r6, %r6, 127; mul.wide.u32 %rd5, %r6, 16; add.u64 %rd5, %rd5, %rd0;
  cvt.rn.f64.u32 %d1, %r0; mov.f64 %d2, %d1; mov.f32 %f1, 0f3F000000; mov.f32 %f2, %f1; cvt.u64.u32 %rd7, %r0;
"""
END = """
  st.global.u32 [%rd1], %r1; st.global.u64 [%rd0+4096], %rd2; st.global.f64 [%rd0+4104], %d1; st.global.f32 [%rd0], %f1;
  ret;"""
LINES = {
    "ld by thread": "ld.global.u32 %r2, [%rd1+{at}]; add.u32 %r1, %r1, %r2;",
    "ld of one address": "ld.global.u32 %r2, [%rd0+{at}]; add.u32 %r1, %r1, %r2;",
    "ld gathered": "ld.global.u8 %r2, [%rd5+{at}]; add.u32 %r1, %r1, %r2;",
    "st by thread": "st.global.u32 [%rd1+{at}], %r1;",
    "st scattered": "st.global.u32 [%rd5+{at}], %r1;",
    "ld.v4 by thread": "ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd4+{at16}]; add.u32 %r1, %r1, %r5;",
    "ld.v4 gathered": "ld.global.v4.u32 {{%r2, %r3, %r4, %r5}}, [%rd5+{at16}]; add.u32 %r1, %r1, %r5;",
    "st.v4 by thread": "st.global.v4.u32 [%rd4+{at16}], {{%r1, %r1, %r0, %r1}};",
    "tex": "tex.2d.v4.f32.f32 {{%f1, %f2, %f3, %f4}}, [%rd6, {{%f1, %f2}}];",
    "red": "red.global.add.u32 [%rd1], %r0;",
    "atom": "atom.global.cas.b64 %rd2, [%rd0], %rd1, %rd2;",
    "fma": "fma.rp.f64 %d1, %d1, %d2, %d1;",
    "division": "div.s64 %rd2, %rd7, %rd2;",
    "shuffle": "shfl.sync.idx.b32 %r1, %r1, %r6, 31, -1;",
    "branch": "setp.gt.u32 %p1, %r0, {index}; @%p1 bra L{index}; add.u32 %r1, %r1, %r0; L{index}:",
}


def straight(line: str, count: int) -> str:
    """A kernel with an instruction ``count`` times."""
    lines = (line.format(at=index % 250 * 4, at16=index % 60 * 16, index=index) for index in range(count))
    return kernel(START + "\n".join(lines) + END, ".param .u64 out, .param .u64 texture")


def lowered(text: str) -> str:
    module = compile.front(text)
    return compile.lower(module, module.functions["k"], "row", compile.Options()).text


def frame_bytes(text: str) -> int:
    """Of what LLVM has not turned into registers."""
    optimized = jit.optimized(lowered(text), None, FAST)
    return sum(int(size or 0) or bytes_of(kind) for size, kind in ALLOCA.findall(optimized))


@pytest.mark.parametrize("name", LINES)
def test_frame_does_not_grow_with_instructions(name: str) -> None:
    few, many = (frame_bytes(straight(LINES[name], count)) for count in (60, 120))
    assert many <= max(few, 16384)


def test_frame_of_many_kinds_of_instructions_is_one_area() -> None:
    lines = [line for name, line in LINES.items() if name != "branch"]
    assert frame_bytes(straight("\n".join(lines), 10)) < 16384


@pytest.mark.parametrize("name", ["ld by thread", "ld gathered", "st by thread", "division", "fma"])
def test_blocks_of_ir_are_cut(name: str) -> None:
    blocks = LABEL.split(lowered(straight(LINES[name], 300)))
    assert max(block.count("\n") for block in blocks) < 10 * LARGE_BLOCK


def product_rows(count: int) -> str:
    """``count`` multiplications whose accumulator is the result of the one before."""
    a, b, c = (
        "{" + ", ".join(f"%{k}{i}" for i in range(*span)) + "}" for k, span in (("r", (10, 18)), ("r", (20, 28)), ("f", (10, 18)))
    )
    shape = "sync.aligned.row.m16n16k16.global"
    return kernel(
        f"""ld.param.u64 %rd0, [out];
        wmma.load.a.{shape}.f16 {a}, [%rd0], 16;
        wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {b}, [%rd0+512], 16;
        wmma.load.c.{shape}.f32 {c}, [%rd0+1024], 16;
        """
        + f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c}, {a}, {b}, {c};\n" * count
        + f"wmma.store.d.{shape}.f32 [%rd0+1024], {c}, 16; ret;"
    )


def test_row_of_matrix_multiplications_is_cut_and_right() -> None:
    text = product_rows(400)
    assert max(block.count("\n") for block in LABEL.split(lowered(text))) < 10 * LARGE_BLOCK
    a = np.arange(256, dtype=np.float16).reshape(16, 16) % 5
    b = np.arange(256, dtype=np.float16).reshape(16, 16) % 3
    c = np.arange(256, dtype=np.float32).reshape(16, 16)
    data = np.concatenate([a.view(np.uint8).ravel(), b.T.copy().view(np.uint8).ravel(), c.view(np.uint8).ravel()])
    ptxemu.loads(text)["k"][1, 32](data)
    found = data[1024:].view(np.float32).reshape(16, 16)
    np.testing.assert_array_equal(found, c + 400 * (a.astype(np.float32) @ b.astype(np.float32)))


MEMORY = np.arange(2048, dtype=np.uint32) * 2654435761
LANE = np.arange(32)


def sums(places: list[np.ndarray]) -> np.ndarray:
    """1 plus what the lanes load at these words, modulo 2**32."""
    return np.array(1 + sum(MEMORY[place].astype(object) for place in places)) % 2**32


LOADS = {
    "ld by thread": lambda index: LANE + index % 250,
    "ld of one address": lambda index: LANE * 0 + index % 250,
    "ld.v4 by thread": lambda index: LANE * 4 + index % 60 * 4 + 3,
    "ld.v4 gathered": lambda index: (LANE * LANE & 127) * 4 + index % 60 * 4 + 3,
}


@pytest.mark.parametrize("name", LOADS)
def test_many_loads(name: str) -> None:
    data = MEMORY.copy()
    ptxemu.loads(straight(LINES[name], 400))["k"][1, 32](data, 0)
    np.testing.assert_array_equal(data[1:32], sums([LOADS[name](index) for index in range(400)])[1:].astype(np.uint32))


def test_thousands_of_reductions() -> None:
    text = kernel(
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
        + "red.global.add.u32 [%rd1], %r0;\n" * 2000
        + "ret;"
    )
    data = MEMORY[:32].copy()
    ptxemu.loads(text)["k"][1, 32](data)
    np.testing.assert_array_equal(data, MEMORY[:32] + 2000 * LANE.astype(np.uint32))


def test_thousands_of_roundings() -> None:
    """Integers that doubles hold need no rounding."""
    text = kernel(
        "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; cvt.rn.f64.u32 %d1, %r0; mov.f64 %d2, 0d3FF0000000000000;\n"
        "mul.wide.u32 %rd1, %r0, 8; add.u64 %rd1, %rd0, %rd1;\n"
        + "fma.rp.f64 %d1, %d1, %d2, %d2;\n" * 1500
        + "st.global.f64 [%rd1], %d1; ret;"
    )
    data = np.zeros(32)
    ptxemu.loads(text)["k"][1, 32](data)
    np.testing.assert_array_equal(data, LANE + 1500.0)


@pytest.mark.parametrize("operation", ["div", "rem"])
@pytest.mark.parametrize("kind", ["s64", "u64"])
def test_division_of_64_bits_is_one_call(operation: str, kind: str) -> None:
    text = lowered(straight(f"{operation}.{kind} %rd2, %rd7, %rd2;", 50))
    assert text.count(f"{operation} i64") + text.count("div i64") <= 2
    assert text.count("div <32 x i64>") == 0


@pytest.mark.parametrize("size", [1000, 100_000, 3_000_000])
def test_frames_of_an_object(size: int) -> None:
    text = f"""declare void @pe_yield(ptr)
    define void @kernel(ptr %w) nounwind "probe-stack"="inline-asm" {{
      %area = alloca [{size} x i8], align 64
      call void @pe_yield(ptr %area)
      ret void
    }}"""
    assert size <= largest_frame(jit.compile_object(text, None, FAST)) <= size + 2 * SMALL


def test_frames_of_aarch64() -> None:
    """``sub x9, sp, #pages, lsl #12`` and ``sub x9, x9, ...`` behind it, as the manual encodes them; the largest frame counts."""

    def subtract(source: int, pages: int) -> int:
        return 0xD1000000 | 1 << 22 | pages << 10 | source << 5 | 9

    nothing, of_stack, of_rest = 0xD503201F, 31, 9
    small, large = [subtract(of_rest, 99), nothing, subtract(of_stack, 5)], [subtract(of_stack, 4095), subtract(of_rest, 7)]
    code = [*small, nothing, *large, nothing]
    head = struct.pack("<18xH44x", 183)
    assert largest_frame(head + struct.pack("<7I2x", *code)) == (4102 << 12) + SMALL
    assert largest_frame(head + struct.pack("<2I", *code[:2])) == SMALL


def test_frame_larger_than_a_small_stack() -> None:
    """Code that is made fast keeps every value in the frame."""
    data = MEMORY.copy()
    ptxemu.loads(straight(LINES["ld by thread"], 3000))["k"][1, 32](data, 0)
    np.testing.assert_array_equal(data[1:32], sums([LOADS["ld by thread"](index) for index in range(3000)])[1:].astype(np.uint32))


def called(count: int) -> str:
    """A kernel that calls a function of 60 instructions ``count`` times."""
    function = ".func (.reg .u32 %o) step(.reg .u32 %i) { .reg .u32 %x; mov.u32 %x, %i;\n"
    function += "".join(f"mad.lo.u32 %x, %x, 5, {index};\n" for index in range(60)) + "mov.u32 %o, %x; ret; }\n"
    body = "ld.param.u64 %rd0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1;\n"
    calls = "call (%r0), step, (%r0);\n" * count
    return kernel(body + calls + "st.global.u32 [%rd1], %r0; ret;", declarations=function)


def test_function_called_often_is_not_copied() -> None:
    text = lowered(called(120))
    assert text.count("(i32 59)") == 1
    assert len(text) < 2 * len(lowered(called(70)))


def test_function_called_often_gives_its_results() -> None:
    data = np.zeros(32, np.uint32)
    ptxemu.loads(called(120))["k"][1, 32](data)
    expected = LANE.astype(object)
    for _ in range(120):
        for index in range(60):
            expected = (expected * 5 + index) % 2**32
    np.testing.assert_array_equal(data, expected.astype(np.uint32))


def test_changes_are_taken_back() -> None:
    journal = Journal()
    numbers: Noted[str, int] = journal.dictionary()
    numbers["one"] = 1
    mark = journal.mark()
    numbers["one"] = 2
    numbers["two"] = 2
    journal.undo(mark)
    assert numbers == {"one": 1}
    journal.clear()
    assert numbers == {}


def state_machine(states: int) -> str:
    """States that may each follow any other."""
    names = ", ".join(f"S{index}" for index in range(states))
    parts = (
        f"S{index}: add.u32 %r1, %r1, 1; setp.gt.u32 %p1, %r1, 99; @%p1 bra DONE; rem.u32 %r2, %r1, {states};\n"
        f"T{index}: .branchtargets {names}; brx.idx %r2, T{index};\n"
        for index in range(states)
    )
    return kernel(START + "bra S1;\n" + "".join(parts) + "DONE:" + END, ".param .u64 out, .param .u64 texture")


def blocks_of_ir(text: str) -> int:
    module = compile.front(text)
    return sum(len(graph.blocks) for graph in compile.prepare(module, module.functions["k"], "row").graphs)


def test_computed_branches_make_no_blocks() -> None:
    few, many = blocks_of_ir(state_machine(20)), blocks_of_ir(state_machine(80))
    assert many < 4.5 * few


def test_state_machine() -> None:
    data = np.zeros(2048, np.uint32)
    ptxemu.loads(state_machine(30))["k"][1, 32](data, 0)
    assert data[1] == 100


def nested(depth: int) -> str:
    """Loops in loops, each of which changes all the registers of those inside; lanes leave them in different rounds."""
    places = [f"%r{10 + i % 54}" for i in range(depth)]
    heads = "mov.u32 %r10, %laneid;\n" + "".join(f"A{i}: add.u32 {place}, {place}, 1;\n" for i, place in enumerate(places))
    tails = "".join(f"setp.lt.u32 %p1, {places[i]}, 2; @%p1 bra A{i};\n" for i in reversed(range(depth)))
    return kernel(f"ld.param.u64 %rd0, [out];\n{heads}{tails}st.global.u32 [%rd0], %r10; ret;", ".param .u64 out")


def test_values_that_leave_loops_are_not_handed_over() -> None:
    """A value has a phi at the exit of each loop around it; there are as many as loops and registers multiplied."""
    module = compile.front(nested(40))
    bodies = compile.prepare(module, module.functions["k"], "row")
    phis = sum(len(block.phis) for block in bodies.graphs[0].blocks)
    text = lowering.lower_bodies(bodies, compile.Options(), threaded=True).text
    assert phis > 1600 and len(text) < 80 * phis


def test_what_llvm_would_take_minutes_for_has_quick_code_alone() -> None:
    module = compile.front(nested(280))
    assert cost_of(compile.prepare(module, module.functions["k"], "row").graphs).best > LONGEST
    fast, best = (compile.kernel(module, "k", compile.Options(tier=tier)) for tier in ("fast", "best"))
    assert best.final
    assert fast == best


def called_functions(work: Callable[[], object]) -> int:
    """How many functions of Python are called."""
    events: Counter[str] = Counter()
    sys.setprofile(lambda frame, event, argument: events.update((event,)))
    try:
        work()
    finally:
        sys.setprofile(None)
    return events["call"]


def test_most_of_what_is_done_for_phis_is_done_for_columns_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same loops, and as many additions, of more registers, each of which has a phi in almost every loop."""
    monkeypatch.delenv(VERIFY_VARIABLE, raising=False)

    def cost(registers: int) -> tuple[int, int]:
        heads = "".join(f"A{i}: add.u32 %r{10 + i % registers}, %r{10 + i % registers}, 1;\n" for i in range(100))
        tails = (f"setp.lt.u32 %p1, %r{10 + i % registers}, {i + 2}; @%p1 bra A{i};\n" for i in reversed(range(100)))
        module = compile.front(kernel(heads + "".join(tails) + "ret;"))
        bodies = compile.prepare(module, module.functions["k"], "row")
        options = compile.Options()
        calls = called_functions(lambda: compile.prepare(module, module.functions["k"], "row"))
        calls += called_functions(lambda: lowering.lower_bodies(bodies, options, threaded=True))
        return calls, sum(len(block.phis) for block in bodies.graphs[0].blocks)

    few, many = cost(2), cost(50)
    assert many[1] > few[1] + 3000
    assert many[0] - few[0] < 13 * (many[1] - few[1])


ALONE = {
    "branches": "setp.ne.u32 %p1, %r0, {index}; @%p1 bra L{index}; add.u32 %r1, %r1, %r0; L{index}:",
    "branches in branches": "setp.ne.u32 %p1, %r0, {index}; @%p1 bra END; add.u32 %r1, %r1, %r0;",
    "conditions": "or.pred %p1, %p1, %p1; @%p1 bra L{index}; add.u32 %r1, %r1, %r0; L{index}:",
    "numbers": "or.b32 %r3, %r3, %r3; setp.ne.u32 %p1, %r3, 0; @%p1 bra L{index}; add.u32 %r1, %r1, %r0; L{index}:",
}


@pytest.mark.parametrize("line", ALONE.values(), ids=ALONE)
def test_code_of_single_lanes_is_found_in_a_time_that_grows_with_it(line: str) -> None:
    def calls(count: int) -> int:
        begin = "mov.u32 %r0, %tid.x; mov.u32 %r3, %r0; mov.u32 %r1, 1; setp.ne.u32 %p1, %r0, 3;"
        end = "END: ld.param.u64 %rd0, [out]; st.global.u32 [%rd0], %r1; ret;"
        lines = (line.format(index=index) for index in range(count))
        module = compile.front(kernel("\n".join([begin, *lines, end])))
        shapes = Uniformity(compile.prepare(module, module.functions["k"], "full row").graphs[0], "full row")
        return called_functions(lambda: single_out(lone_code(shapes), shapes.varies))

    few, many = calls(100), calls(400)
    assert many < 4.2 * few


LOCK = "L{index}: atom.global.cas.b32 %r2, [%rd0], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L{index}; st.global.u32 [%rd0], 0;"


@pytest.mark.parametrize("line", [LINES["branch"], LOCK], ids=["branches", "locks taken by lanes"])
def test_control_flow_of_threaded_code_is_data(line: str) -> None:
    def labels(count: int) -> int:
        module = compile.front(straight(line, count))
        bodies = compile.prepare(module, module.functions["k"], "row")
        made = lowering.lower_bodies(bodies, compile.Options(), threaded=True)
        assert made.independent == (line is LOCK)
        return len(LABEL.findall(made.text))

    assert labels(300) == labels(100)


@pytest.mark.parametrize("threaded", [False, True])
def test_meetings_of_lanes_that_wait_for_each_other(threaded: bool) -> None:
    """What each of them asks about all others is asked of a table."""

    def size(count: int) -> int:
        lock = "L: atom.global.cas.b32 %r2, [%rd0], 0, 1; setp.ne.u32 %p1, %r2, 0; @%p1 bra L; st.global.u32 [%rd0], 0; bra M;"
        body = "bar.warp.sync 0xffff;\n" * count
        module = compile.front(straight(f"setp.gt.u32 %p1, %r0, 15; @!%p1 bra N; {lock} N: {body} M:", 1))
        bodies = compile.prepare(module, module.functions["k"], "row")
        made = lowering.lower_bodies(bodies, compile.Options(), threaded=threaded)
        assert made.independent
        return len(made.text)

    few, more, many = (size(count) for count in (50, 100, 200))
    assert many - more < 2.1 * (more - few)
