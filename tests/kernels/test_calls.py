"""Hand-written calls: every form of indirect call, targets that are none, linkage, and stacks that are full."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from ptxemu.driver import compile as pipeline
from tests.support.kernel_tools import HEADER, kernel, run

FUNCTIONS = """
.func (.param .b32 r) next (.param .b32 x)
{
  .reg .b32 %a;
  ld.param.b32 %a, [x]; add.s32 %a, %a, 1; st.param.b32 [r], %a; ret;
}
.func (.param .b32 r) tenfold (.param .f32 x)
{
  .reg .b32 %a;
  ld.param.b32 %a, [x]; mul.lo.s32 %a, %a, 10; st.param.b32 [r], %a; ret;
}
.func (.param .b64 r) wide (.param .b64 x)
{
  .reg .b64 %a;
  ld.param.b64 %a, [x]; st.param.b64 [r], %a; ret;
}
.func leave () { exit; }
"""
PROTOTYPE = "P: .callprototype (.param .b32 _) _ (.param .b32 _);"
TABLE = """
.global .u64 table[2] = {next, tenfold};
.const .u64 fixed[2] = {tenfold, next};
.global .u32 short[2] = {next, tenfold};
"""
THREADS = np.arange(32)
NEXT, TENFOLD = THREADS + 1, THREADS * 10
MIXED = np.where(THREADS & 1, TENFOLD, NEXT)


def launch(body: str, declarations: str = FUNCTIONS + TABLE) -> NDArray[np.uint32]:
    """``%r5`` of every thread; ``%r3`` is its number and ``%rd9`` eight for the odd ones."""
    start = """
  ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mov.u32 %r5, 77;
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd1, %rd2;
  and.b32 %r9, %r3, 1; mul.wide.u32 %rd9, %r9, 8;
"""
    out = np.zeros(32, np.uint32)
    run(kernel(f"{start}\n{body}\n  st.global.u32 [%rd2], %r5; ret;", declarations=declarations), 1, 32, out)
    return out


INDIRECT = {
    "prototype": (f"mov.u64 %rd3, next; {PROTOTYPE} call (%r5), %rd3, (%r3), P;", NEXT),
    "uniform": (f"mov.u64 %rd3, tenfold; {PROTOTYPE} call.uni (%r5), %rd3, (7), P;", 70),
    "floats and bits agree": ("mov.u64 %rd3, next; P: .callprototype (.param .f32 _) _ (.param .f32 _); "
                              ".param .f32 a, b; st.param.b32 [a], %r3; call (b), %rd3, (a), P; ld.param.b32 %r5, [b];", NEXT),
    "global table": (f"mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd9; ld.global.u64 %rd3, [%rd4]; {PROTOTYPE} "
                     "call (%r5), %rd3, (%r3), P;", MIXED),
    "constant table": (f"mov.u64 %rd4, fixed; sub.u64 %rd4, %rd4, %rd9; ld.const.u64 %rd3, [%rd4+8]; {PROTOTYPE} "
                       "call (%r5), %rd3, (%r3), P;", MIXED),
    "the table itself": ("mov.u64 %rd4, table; add.u64 %rd4, %rd4, %rd9; ld.global.u64 %rd3, [%rd4]; "
                         "call (%r5), %rd3, (%r3), table;", MIXED),
    "the table of constants": ("ld.const.u64 %rd3, [fixed]; call (%r5), %rd3, (%r3), fixed;", TENFOLD),
    "listed targets": ("mov.u64 %rd3, tenfold; T: .calltargets next, tenfold; call (%r5), %rd3, (%r3), T;", TENFOLD),
    "32-bit address": (f"mov.u32 %r4, next; {PROTOTYPE} call (%r5), %r4, (%r3), P;", NEXT),
    "32-bit table": (f"ld.global.u32 %r4, [short+4]; {PROTOTYPE} call (%r5), %r4, (%r3), P;", TENFOLD),
    "guarded": (f"mov.u64 %rd3, next; setp.gt.u32 %p1, %r3, 20; {PROTOTYPE} @%p1 call (%r5), %rd3, (%r3), P;",
                np.where(THREADS > 20, NEXT, 77)),
    "nobody calls": (f"mov.u64 %rd3, 0; setp.gt.u32 %p1, %r3, 99; {PROTOTYPE} @%p1 call (%r5), %rd3, (%r3), P;", 77),
    "result dropped": (f"mov.u64 %rd3, next; {PROTOTYPE} call (_), %rd3, (%r3), P;", 77),
    "no parameters": ("setp.gt.u32 %p1, %r3, 20; mov.u64 %rd3, leave; P: .callprototype _ (); @%p1 call %rd3, P;",
                      np.where(THREADS > 20, 0, 77)),
    "does not return": ("setp.gt.u32 %p1, %r3, 20; mov.u64 %rd3, leave; P: .callprototype _ () .noreturn; @%p1 call %rd3, (), P;",
                        np.where(THREADS > 20, 0, 77)),
    "chosen by the thread": ("mov.u64 %rd3, next; mov.u64 %rd4, tenfold; setp.lt.u32 %p1, %r3, 11; "
                             f"selp.u64 %rd3, %rd3, %rd4, %p1; {PROTOTYPE} call (%r5), %rd3, (%r3), P;",
                             np.where(THREADS < 11, NEXT, TENFOLD)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDIRECT)
def test_indirect_calls(name: str) -> None:
    body, expected = INDIRECT[name]
    np.testing.assert_array_equal(launch(body), np.broadcast_to(expected, 32))


NO_TARGET = {
    "null": ("mov.u64 %rd3, 0;", PROTOTYPE, 0),
    "data": ("mov.u64 %rd3, %rd1;", PROTOTYPE, 0),
    "inside a function": ("mov.u64 %rd3, next; add.u64 %rd3, %rd3, 4;", PROTOTYPE, 0),
    "other signature": ("mov.u64 %rd3, wide;", PROTOTYPE, 0),
    "a kernel": ("mov.u64 %rd3, k;", PROTOTYPE, 0),
    "not listed": ("mov.u64 %rd3, next;", "P: .calltargets tenfold;", 0),
    "one thread": ("mov.u64 %rd3, next; setp.eq.u32 %p1, %r3, 9; selp.u64 %rd3, 0x1230, %rd3, %p1;", PROTOTYPE, 9),
}


@pytest.mark.parametrize("name", NO_TARGET)
def test_calls_of_what_is_no_function(name: str) -> None:
    """The fault names the first thread that calls it; nothing is jumped to."""
    address, targets, thread = NO_TARGET[name]
    with pytest.raises(ptxemu.Fault, match=r"invalid call target in kernel `k` at test\.ptx") as caught:
        launch(f"{address} {targets}\n call (%r5), %rd3, (%r3), P;")
    record = caught.value.record
    assert record["thread"] == (thread, 0, 0)
    assert "signature" in str(record["note"])


def test_no_function_has_its_address_taken() -> None:
    with pytest.raises(ptxemu.Fault, match="invalid call target"):
        launch(f"mov.u64 %rd3, %rd1; {PROTOTYPE} call (%r5), %rd3, (%r3), P;", "")


LINKAGE = {
    "alias": (FUNCTIONS + ".visible .func (.param .b32 r) other (.param .b32 x);\n.alias other, next;\n", "other"),
    "weak": (FUNCTIONS.replace(".func (.param .b32 r) next", ".weak .func (.param .b32 r) next"), "next"),
    "declared before": (".func (.param .b32 r) next (.param .b32 x);\n" + FUNCTIONS, "next"),
}


@pytest.mark.parametrize("name", LINKAGE)
def test_linkage(name: str) -> None:
    declarations, function = LINKAGE[name]
    np.testing.assert_array_equal(launch(f"call (%r5), {function}, (%r3);", declarations), NEXT)
    np.testing.assert_array_equal(
        launch(f"mov.u64 %rd3, {function}; {PROTOTYPE} call (%r5), %rd3, (%r3), P;", declarations), NEXT
    )


def test_undefined_functions() -> None:
    declared = ".extern .func (.param .b32 r) far (.param .b32 x);\n"
    with pytest.raises(ptxemu.UnsupportedError, match="call of external function 'far'"):
        launch("call (%r5), far, (%r3);", declared)
    with pytest.raises(ptxemu.Fault, match="invalid call target"):
        launch(f"mov.u64 %rd3, far; {PROTOTYPE} call (%r5), %rd3, (%r3), P;", declared)


OPEN = """
.func (.param .b32 r) pick (.param .b32 n, .param .align 4 .b8 values[])
{
  .reg .b32 %n, %a; .reg .b64 %at, %by;
  ld.param.b32 %n, [n];
  mov.u64 %at, values; mul.wide.u32 %by, %n, 4; add.u64 %at, %at, %by;
  ld.local.b32 %a, [%at];
  st.param.b32 [r], %a; ret;
}
"""


def test_open_array_parameter() -> None:
    body = """
  .param .align 4 .b8 values[12]; .param .b32 n, picked;
  st.param.v2.b32 [values], {%r3, 5}; st.param.b32 [values+8], 6; rem.u32 %r4, %r3, 3; st.param.b32 [n], %r4;
  call (picked), pick, (n, values);
  ld.param.b32 %r5, [picked];
"""
    np.testing.assert_array_equal(launch(body, OPEN), np.choose(THREADS % 3, [THREADS, 5, 6]))


# ---------------------------------------------------------------- structs by value

COUNT = 12


def pieces(random: np.random.Generator, size: int, longest: int = 16) -> list[tuple[int, int]]:
    """A partition of ``size`` bytes into naturally aligned (offset, length), in any order."""
    found, at = [], 0
    while at < size:
        fitting = [length for length in (1, 2, 4, 8, 16) if length <= longest and at % length == 0 and at + length <= size]
        found.append((at, int(random.choice(fitting))))
        at += found[-1][1]
    random.shuffle(found)
    return found


def moves(parts: list[tuple[int, int]], source: str, target: str) -> str:
    """Copies by pieces; ``source`` and ``target`` are like ``ld.param{} {}, [x+{}]``."""
    registers = {1: "%h1", 2: "%h2", 4: "%r1", 8: "%rd1", 16: "%q1"}
    lines = []
    for offset, length in parts:
        for template in (source, target):
            text = template.replace("TYPE", f"b{8 * length}").replace("REG", registers[length]).replace("AT", str(offset))
            lines.append(text)
    return "\n".join(lines)


def reversing(random: np.random.Generator, size: int, align: int, escapes: bool) -> str:
    """A kernel that passes structs to a function which gives them back with their bytes in reverse."""
    registers = ".reg .b16 %h<3>; .reg .b32 %r<3>; .reg .b64 %rd<9>; .reg .b128 %q<2>; .reg .pred %p;"
    local = f".local .align 16 .b8 a[{size}]; .local .align 16 .b8 b[{size}];"
    if escapes:
        read = "mov.u64 %rd2, x;\n" + moves(
            pieces(random, size, align), "ld.local.TYPE REG, [%rd2+AT];", "st.local.TYPE [a+AT], REG;"
        )
    else:
        read = moves(pieces(random, size), "ld.param.TYPE REG, [x+AT];", "st.local.TYPE [a+AT], REG;")
    turn = "\n".join(f"ld.local.b8 %h1, [a+{i}]; st.local.b8 [b+{size - 1 - i}], %h1;" for i in range(size))
    write = moves(pieces(random, size), "ld.local.TYPE REG, [b+AT];", "st.param.TYPE [y+AT], REG;")
    passed = moves(pieces(random, size), "ld.global.TYPE REG, [%rd3+AT];", "st.param.TYPE [s+AT], REG;")
    taken = moves(pieces(random, size), "ld.param.TYPE REG, [t+AT];", "st.global.TYPE [%rd4+AT], REG;")
    formal = f".param .align {align} .b8"
    return f"""{HEADER.replace("8.0", "8.4")}
.func ({formal} y[{size}]) turned ({formal} x[{size}], .param .b16 unused)
{{ {registers} {local}
{read}
{turn}
{write}
ret; }}
.visible .entry k(.param .u64 source, .param .u64 target)
{{ {registers}
ld.param.u64 %rd3, [source]; ld.param.u64 %rd4, [target]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd5, %r1, 64;
add.u64 %rd3, %rd3, %rd5; add.u64 %rd4, %rd4, %rd5;
{formal} s[{size}]; {formal} t[{size}];
P: .callprototype ({formal} _[{size}]) _ ({formal} _[{size}], .param .b16 _);
mov.u64 %rd6, turned;
{passed}
call (t), %rd6, (s, 1), P;
{taken}
ret; }}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("escapes", [False, True])
@pytest.mark.parametrize("seed", range(COUNT))
def test_structs_in_any_pieces(seed: int, escapes: bool) -> None:
    random = np.random.default_rng(seed)
    size, align = int(random.integers(1, 41)), int(random.choice([1, 2, 4, 8, 16]))
    source = random.integers(0, 256, (40, 64), np.uint8)
    target = np.zeros((40, 64), np.uint8)
    run(reversing(random, size, align, escapes), 1, 40, source, target)
    np.testing.assert_array_equal(target[:, :size], source[:, :size][:, ::-1])


# ---------------------------------------------------------------- depth

DOWN = (
    HEADER
    + """
.func (.param .b32 sum) down (.param .b32 n)
{
  FRAME
  .reg .b32 %a, %b; .reg .pred %p;
  ld.param.b32 %a, [n];
  setp.eq.s32 %p, %a, 0;
  @%p bra END;
  USE
  sub.s32 %b, %a, 1;
  call (%b), WHICH, (%b);
  add.s32 %a, %a, %b;
END:
  st.param.b32 [sum], %a;
  ret;
}
"""
)
DEPTHS = """
.visible .entry k (.param .u64 out, .param .u32 first, .param .u32 step)
{
  .reg .b32 %r<6>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [first]; ld.param.u32 %r2, [step];
  mov.u32 %r3, %tid.x; mad.lo.u32 %r4, %r3, %r2, %r1;
  call (%r5), down, (%r4);
  BARRIER
  mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r5;
  ret;
}
"""
PLAIN = DOWN.replace("FRAME", "").replace("USE", "").replace("WHICH", "down") + DEPTHS
FRAMED = DOWN.replace("FRAME", ".local .b32 x[25];").replace("USE", "st.local.b32 [x+96], %a;").replace("WHICH", "down") + DEPTHS
TAKING = (
    DOWN.replace("FRAME", ".reg .b64 %x;").replace("USE", "alloca.u64 %x, 100; st.local.b32 [%x], 1;").replace("WHICH", "down")
    + DEPTHS
)
MUTUAL = (
    HEADER
    + ".func (.param .b32 sum) up (.param .b32 n);\n"
    + PLAIN.removeprefix(HEADER).replace("(%b), down", "(%b), up")
    + DOWN.removeprefix(HEADER).replace("down", "up").replace("FRAME", "").replace("USE", "").replace("WHICH", "down")
)
MODULES = {"plain": PLAIN, "framed": FRAMED, "alloca": TAKING, "mutual": MUTUAL}


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
@pytest.mark.parametrize("name", MODULES)
def test_stacks(name: str, barrier: str) -> None:
    """Every thread has a depth of its own; too deep is a fault at a call, after which the module is as good as before."""
    module = ptxemu.loads(MODULES[name].replace("BARRIER", barrier), filename="deep.ptx")
    out = np.zeros(64, np.uint32)
    depths = np.arange(64) + 40
    module["k"][1, 64](out, 40, 1)
    np.testing.assert_array_equal(out, depths * (depths + 1) // 2)
    lines = [
        number
        for number, text in enumerate(module.program.source.text.splitlines(), 1)
        if "call (%b)" in text or "alloca" in text
    ]
    for first, step in ((0xFFFFFFFF, 0), (1000, 1 << 20), (0x7FFFFFFF, 77)):
        with pytest.raises(ptxemu.Fault, match=r"stack overflow in kernel `k` at deep\.ptx:") as caught:
            module["k"][1, 64](np.zeros(64, np.uint32), first, step)
        assert int(str(caught.value.record["where"]).split(":")[1]) in lines
        assert caught.value.record["thread"] is not None
    module["k"][1, 64](out, 40, 1)
    np.testing.assert_array_equal(out, depths * (depths + 1) // 2)


def test_stack_of_a_device() -> None:
    """100 bytes a call: 16 KiB hold 150 calls, 64 KiB 600, and 1 KiB not even 10."""
    text = FRAMED.replace("BARRIER", "")
    out = np.zeros(32, np.uint32)
    for stack, depth in ((None, 130), ("64 KiB", 550), (1024, 8)):
        device = ptxemu.Device(memory="64 MiB") if stack is None else ptxemu.Device(memory="64 MiB", stack=stack)
        module = ptxemu.loads(text, device=device)
        module["k"][1, 32](out, depth, 0)
        assert set(out) == {depth * (depth + 1) // 2}
        with pytest.raises(ptxemu.Fault, match="stack overflow"):
            module["k"][1, 32](out, depth * 3, 0)
    with pytest.raises(ptxemu.InputError, match="the stack of a thread"):
        ptxemu.Device(memory="64 MiB", stack="1 MiB")


def test_timeout_in_a_recursion_without_loops() -> None:
    text = PLAIN.replace("BARRIER", "").replace("call (%b), down, (%b);", "call (%a), down, (%b);\n call (%b), down, (%b);")
    with pytest.raises(ptxemu.LaunchTimeout):
        run(text, 1, 32, np.zeros(32, np.uint32), 100, 0, timeout=0.2)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_other_processors(cpu: str) -> None:
    for text in (FRAMED.replace("BARRIER", ""), kernel(*_indirect())):
        module = ptxemu.loads(text)
        assert pipeline.kernel(module.program.ir, "k", pipeline.Options(cpu=cpu)).object


def _indirect() -> tuple[str, str, str]:
    return f"ld.global.u64 %rd3, [table]; {PROTOTYPE} call (%r5), %rd3, (%r3), P; ret;", ".param .u64 out", FUNCTIONS + TABLE


# ---------------------------------------------------------------- code size


def test_calls_do_not_multiply() -> None:
    """Each function calls the next one twice: 2**30 copies if all were inlined."""
    levels = 30
    text = HEADER
    for level in range(levels, -1, -1):
        inner = f"call (%a), f{level + 1}, (%a); call (%b), f{level + 1}, (%a); add.u32 %a, %a, %b;" if level < levels else ""
        body = f"mov.b32 %a, %x; {'add.u32 %a, %a, 1; ' * 10} {inner} mov.b32 %r, %a; ret;"
        text += f".func (.reg .b32 %r) f{level} (.reg .b32 %x)\n{{ .reg .b32 %a, %b; {body} }}\n"
    text += kernel(
        "ld.param.u32 %r1, [n]; setp.eq.u32 %p1, %r1, 0; @%p1 call (%r1), f0, (%r1);"
        "ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1; ret;",
        ".param .u64 out, .param .u32 n",
    ).removeprefix(HEADER)
    out = np.zeros(1, np.uint32)
    run(text, 1, 1, out, 5)
    assert out[0] == 5


def test_long_chains_of_calls() -> None:
    levels = 700
    text = HEADER + ".func (.reg .b32 %r) f0 (.reg .b32 %x) { add.u32 %r, %x, 1; ret; }\n"
    for level in range(1, levels):
        body = f".reg .b32 %a; call (%a), f{level - 1}, (%x); add.u32 %r, %a, 1; ret;"
        text += f".func (.reg .b32 %r) f{level} (.reg .b32 %x) {{ {body} }}\n"
    last = f"call (%r1), f{levels - 1}, (5); ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], %r1; ret;"
    text += kernel(last).removeprefix(HEADER)
    out = np.zeros(1, np.uint32)
    run(text, 1, 1, out)
    assert out[0] == levels + 5
