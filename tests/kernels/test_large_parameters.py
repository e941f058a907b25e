"""Structs passed by value: small ones travel in registers, large ones in the frame of the callee."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;"
SIZES = [8, 60, 64, 68, 200, 1001]
THREADS = 40


def run(functions: str, body: str, *more: object, threads: int = THREADS) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The word that each thread leaves in ``%r8``, which starts as its index (also in ``%r1``)."""
    out = np.zeros(threads, np.uint32)
    extra = "".join(f", .param .align 8 .b8 given{index}[{len(bytes(item))}]" for index, item in enumerate(more))  # type: ignore[arg-type]
    text = f"""{HEADER}{functions}
.visible .entry k (.param .u64 out{extra}) {{ {REGISTERS}
  ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mov.u32 %r8, %r1;
  {body}
  st.global.u32 [%d1], %r8; ret; }}"""
    ptxemu.loads(text, filename="large.ptx")["k"][1, threads](out, *more)
    return out


def recursive(size: int) -> str:
    """sum(s, n): the first and the last byte of the struct, n times; the first one grows by one each time."""
    struct = f".param .align 4 .b8 s[{size}]"
    return f"""
.func (.param .b32 result) sum ({struct}, .param .b32 n);
.func (.param .b32 result) sum ({struct}, .param .b32 n) {{ {REGISTERS}
  ld.param.b32 %r1, [n]; ld.param.u8 %r2, [s]; ld.param.u8 %r3, [s+{size - 1}]; add.u32 %r4, %r2, %r3;
  setp.eq.u32 %p1, %r1, 0; mov.u32 %r5, 0; @%p1 bra done;
  {{ .param .align 4 .b8 x[{size}]; .param .b32 m, y; sub.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1;
    st.param.b8 [x], %r2; st.param.b8 [x+{size - 1}], %r3; st.param.b32 [m], %r1;
    call (y), sum, (x, m); ld.param.b32 %r5, [y]; add.u32 %r5, %r5, %r4; }}
done: st.param.b32 [result], %r5; ret; }}"""


@pytest.mark.parametrize("size", SIZES)
def test_recursion(size: int) -> None:
    """Each lane goes to a depth of its own."""
    scope = f".param .align 4 .b8 x[{size}]; .param .b32 n, y; and.b32 %r2, %r1, 7; st.param.b32 [n], %r2;"
    call = f"st.param.b8 [x], %r1; st.param.b8 [x+{size - 1}], 3; call (y), sum, (x, n); ld.param.b32 %r8, [y];"
    found = run(recursive(size), f"{{ {scope} {call} }}")
    assert found.tolist() == [sum(lane + step + 3 for step in range(lane & 7)) for lane in range(THREADS)]


def passing(size: int) -> str:
    """rotate(s) gives the bytes of s, each plus one, the other way round; pass(s) the same; both call themselves in vain."""
    struct, words = f".param .align 4 .b8 s[{size}]", range(0, size - 3, 4)
    signature = f"(.param .align 4 .b8 r[{size}])"
    vain = f"ld.param.b32 %r1, [s]; setp.eq.u32 %p1, %r1, 0xffffffff; @!%p1 bra go; {{ .param .align 4 .b8 v[{size}]; "
    moves = " ".join(f"ld.param.b32 %r2, [s+{at}]; add.u32 %r2, %r2, 1; st.param.b32 [r+{words[-1] - at}], %r2;" for at in words)
    return f"""
.func {signature} rotate ({struct}) {{ {REGISTERS} {vain} call (v), rotate, (s); }} go: {moves} ret; }}
.func {signature} pass ({struct}) {{ {REGISTERS} {vain} call (v), pass, (s); }}
go: {{ .param .align 4 .b8 v[{size}]; call (v), rotate, (s);
  {" ".join(f"ld.param.b32 %r2, [v+{at}]; st.param.b32 [r+{at}], %r2;" for at in words)} }} ret; }}"""


@pytest.mark.parametrize("callee", ["rotate", "pass"])
@pytest.mark.parametrize("size", [size for size in SIZES if size % 4 == 0])
def test_results(size: int, callee: str) -> None:
    """Arguments are read before results are written, be they one variable."""
    words = range(0, size, 4)
    stores = " ".join(f"add.u32 %r2, %r1, {at * at}; st.param.b32 [x+{at}], %r2;" for at in words)
    loads = " ".join(f"ld.param.b32 %r2, [x+{at}]; mad.lo.u32 %r8, %r8, 31, %r2;" for at in words)
    body = f"{{ .param .align 4 .b8 x[{size}]; {stores} call (x), {callee}, (x); {loads} }}"
    values = np.arange(THREADS, dtype=np.uint32)[:, None] + np.array([at * at + 1 for at in words], np.uint32)
    expected = np.arange(THREADS, dtype=np.uint32)
    for column in values.T[::-1]:
        expected = expected * np.uint32(31) + column
    assert run(passing(size), body).tolist() == expected.tolist()


def test_through_an_address() -> None:
    size = 128
    prototype = f"f: .callprototype (.param .align 4 .b8 _[{size}]) _ (.param .align 4 .b8 _[{size}]);"
    choice = "mov.u64 %d2, rotate; mov.u64 %d3, pass; and.b32 %r3, %r1, 1; setp.ne.u32 %p1, %r3, 0; selp.b64 %d2, %d2, %d3, %p1;"
    stores = f"st.param.b32 [x], %r1; st.param.b32 [x+{size - 4}], 5;"
    loads = f"ld.param.b32 %r2, [x]; ld.param.b32 %r3, [x+{size - 4}]; mad.lo.u32 %r8, %r2, 100, %r3;"
    body = f"{prototype} {choice} {{ .param .align 4 .b8 x[{size}]; {stores} call (x), %d2, (x), f; {loads} }}"
    assert run(passing(size), body).tolist() == [600 + lane + 1 for lane in range(THREADS)]


def test_a_parameter_read_through_its_address() -> None:
    function = f"""
.func (.param .b32 r) pick (.param .align 4 .b8 s[256], .param .b32 n) {{ {REGISTERS}
  ld.param.b32 %r1, [n]; setp.gt.u32 %p1, %r1, 900; @!%p1 bra go;
  {{ .param .b32 y; call (y), pick, (s, n); }}
go: mov.b64 %d1, s; mad.wide.u32 %d1, %r1, 4, %d1; ld.local.u32 %r2, [%d1]; st.param.b32 [r], %r2; ret; }}"""
    stores = " ".join(f"add.u32 %r2, %r1, {at * 7}; st.param.b32 [x+{at}], %r2;" for at in range(0, 256, 4))
    scope = f".param .align 4 .b8 x[256]; .param .b32 n, y; st.param.b32 [n], %r1; {stores}"
    found = run(function, f"{{ {scope} call (y), pick, (x, n); ld.param.b32 %r8, [y]; }}")
    assert found.tolist() == [lane + lane * 28 for lane in range(THREADS)]


def test_many_calls_take_code_in_proportion() -> None:
    """A call of a function with a struct of 4,000 bytes takes as much IR as one with a struct of 100 bytes."""
    from ptxemu.driver import compile

    def length(size: int, calls: int) -> int:
        call = f"{{ .param .align 4 .b8 x[{size}]; .param .b32 n, y; st.param.b8 [x+1], %r1; call (y), sum, (x, n); }}\n"
        text = f"{HEADER}{recursive(size)}\n.visible .entry k () {{ {REGISTERS} {call * calls} ret; }}"
        module = compile.front(text)
        return len(compile.lower(module, compile.find_entry(module, "k"), "row", compile.Options()).text)

    small, large = length(100, 20), length(4000, 20)
    assert large < 1.1 * small
    assert length(4000, 40) < 2.1 * large


def test_a_struct_larger_than_a_stack() -> None:
    scope = ".param .align 4 .b8 x[300000]; .param .b32 n, y; st.param.b32 [n], 9; call (y), sum, (x, n);"
    with pytest.raises(ptxemu.Fault, match=r"stack overflow in kernel `k` at large.ptx"):
        run(recursive(300000), f"{{ {scope} }}", threads=1)


def calls_of_sum(*sizes: int) -> tuple[str, str]:
    """A function for each size, and calls of them in a row, one a line."""
    functions = "".join(recursive(size).replace("sum", f"sum{size}") for size in dict.fromkeys(sizes))
    scopes = "{{ .param .align 4 .b8 x[{0}]; .param .b32 n, y; st.param.b32 [n], 1; call (y), sum{0}, (x, n); }}\n"
    return functions, "".join(map(scopes.format, sizes))


def test_a_larger_struct_has_a_test_of_its_own() -> None:
    functions, calls = calls_of_sum(200, 300000)
    line = (HEADER + functions).count("\n") + 5
    with pytest.raises(ptxemu.Fault, match=rf"stack overflow in kernel `k` at large.ptx:{line}\b"):
        run(functions, calls, threads=1)


def test_calls_in_a_row_are_tested_once() -> None:
    def tests(*sizes: int) -> int:
        functions, calls = calls_of_sum(*sizes)
        module = compile.front(f"{HEADER}{functions}.visible .entry k() {{ {calls} ret; }}")
        return compile.lower(module, module.functions["k"], "row", compile.Options()).text.count("call void @pe_stack_overflow")

    assert tests(200, 200, 1001, 200) == tests(200, 1001)


@pytest.mark.parametrize("size", [1 << 20, 1 << 30])
def test_a_struct_larger_than_local_memory(size: int) -> None:
    scope = f".param .align 4 .b8 x[{size}]; .param .b32 n, y; st.param.b32 [n], 9; call (y), sum, (x, n);"
    with pytest.raises(ptxemu.InputError, match=r"'sum' takes .* bytes of local memory; a thread has 524288"):
        run(recursive(size), f"{{ {scope} }}", threads=1)
