"""Device functions, local arrays, module variables and modules with several kernels.

``data/kernels/functions.cu`` is the source of the compiled kernels.
"""

from __future__ import annotations

import struct

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import HEADER, kernel, run
from tests.support.places import KERNELS

PARTICLE = np.dtype([("position", "<f4", 3), ("kind", "<i4"), ("weight", "<f8"), ("name", "S5"), ("rest", "V3")], align=False)


@pytest.fixture
def compiled() -> ptxemu.Module:
    return ptxemu.load(KERNELS / "functions.ptx")


def test_structs_through_nested_calls(compiled: ptxemu.Module) -> None:
    times = np.array([0, 1, 5, 12, 3] * 8, np.int32)
    by = np.array([0.5, -2, 4], np.float32)
    start = struct.pack("<3fid5s3x", 1, 2, 3, 100, 0.25, b"abcde")
    out = np.zeros(times.size, PARTICLE)
    compiled["particles"][1, times.size](out.view(np.uint8), start, by.tobytes(), times)
    for thread, (count, particle) in enumerate(zip(times.tolist(), out)):
        position = np.array([1, 2, 3]) + by * (count * (count + 1) // 2)  # exact in f32
        np.testing.assert_array_equal(particle["position"], position)
        assert particle["kind"] == -(100 + thread)
        assert particle["weight"] == 0.25 + float(position @ by)
        name = bytearray(b"abcde")
        for step in range(count):
            name[step % 5] += 1
        assert particle["name"] == bytes(name)


def test_local_array_through_a_pointer(compiled: ptxemu.Module) -> None:
    n, threads = 50, 96
    keys = np.random.default_rng(1).integers(-100, 100, n).astype(np.int32)
    out = np.zeros((threads, 2), np.int32)
    compiled["scratch"][3, 32](keys, out, n)
    for thread in range(threads):
        bins = np.zeros(16, np.int64)
        np.add.at(bins, (keys + thread) & 15, np.arange(1, n + 1))
        best = int(np.argmax(bins))
        assert out[thread].tolist() == [best, bins[best + thread & 15]]


def test_module_variables_and_pointers_between_them(compiled: ptxemu.Module) -> None:
    primes = [2, 3, 5, 7, 11, 13, 17, 19]
    out = np.zeros((8, 4), np.int32)
    compiled["variables"][1, 8](out)
    words = [b"left\0", b"right\0"]
    for thread, row in enumerate(out.tolist()):
        near, far = primes[4 + thread % 4], primes[4 - thread % 4]
        assert row == [3 + 2, near - far, words[thread & 1][thread & 3], primes[thread & 7]]
    np.testing.assert_array_equal(compiled.get_global("counters").array.view(np.int32), [41, 42, 3, 4])
    compiled["variables"][1, 8](out)
    assert out[0, 0] == 3 + 42  # the module's variables live on
    fresh = ptxemu.load(KERNELS / "functions.ptx")
    fresh["variables"][1, 8](out)
    assert out[0, 0] == 5  # and each load has its own


PARAM_ARRAYS = f"""{HEADER}
.func (.param .align 4 .b8 sum[8]) add2 (.param .align 4 .b8 a[8], .param .b32 times)
{{
  .reg .b32 %r<6>;
  ld.param.v2.b32 {{%r1, %r2}}, [a]; ld.param.b32 %r3, [times];
  mul.lo.s32 %r4, %r1, %r3; mul.lo.s32 %r5, %r2, %r3;
  st.param.b32 [sum], %r4; st.param.b32 [sum+4], %r5;
  ret;
}}
.func (.reg .b32 total) chain (.reg .b32 x, .reg .b32 depth)
{{
  .reg .b32 %r<4>; .reg .pred %p;
  setp.eq.s32 %p, depth, 0;
  @%p bra ZERO;
  {{
    .param .align 4 .b8 pair[8]; .param .b32 count; .param .align 4 .b8 result[8];
    st.param.v2.b32 [pair], {{x, depth}};
    st.param.b32 [count], 3;
    call (result), add2, (pair, count);
    ld.param.b32 %r1, [result]; ld.param.b32 %r2, [result+4];
  }}
  add.s32 total, %r1, %r2;
  ret;
ZERO:
  mov.b32 total, -1;
  ret;
}}
.visible .entry k(.param .u64 out)
{{
  .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; mov.u32 %r3, 5;
  setp.ne.u32 %p, %r1, 7;
  @%p call (%r3), chain, (%r1, %r2);
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3], %r3;
  ret;
}}
"""


def test_register_and_array_parameters_and_divergent_calls() -> None:
    out = np.zeros(40, np.int32)
    run(PARAM_ARRAYS, 1, 40, out)
    expected = [5 if t == 7 else -1 if t & 3 == 0 else 3 * t + 3 * (t & 3) for t in range(40)]
    np.testing.assert_array_equal(out, expected)


def test_several_kernels_share_a_module() -> None:
    text = HEADER + ".global .u32 total = 5;\n.shared .u32 unused[4];\n"
    for name, operation in (("grow", "add.u32 %r2, %r1, 3"), ("square", "mul.lo.u32 %r2, %r1, %r1")):
        text += f"""
.visible .entry {name}()
{{
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [total]; {operation}; st.global.u32 [total], %r2; ret;
}}
"""
    module = ptxemu.loads(text)
    assert list(module) == ["grow", "square"]
    module["grow"][1, 1]()
    module["square"][1, 1]()
    module["grow"][1, 1]()
    assert module.get_global("total").array == 67


DYNAMIC = """
  ld.param.u64 %rd1, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ntid.x;
  mov.u32 %r2, fixed; mov.u32 %r3, dynamic; mad.lo.u32 %r4, %r0, 4, %r2; mad.lo.u32 %r5, %r0, 8, %r3;
  st.shared.u32 [%r4], %r0; cvt.u64.u32 %rd2, %r0; mul.lo.u64 %rd2, %rd2, 1000; st.shared.u64 [%r5], %rd2;
  bar.sync 0;
  sub.u32 %r6, %r1, %r0; sub.u32 %r6, %r6, 1;
  mad.lo.u32 %r7, %r6, 4, %r2; ld.shared.u32 %r8, [%r7]; mad.lo.u32 %r9, %r6, 8, %r3; ld.shared.u64 %rd3, [%r9];
  cvt.u64.u32 %rd4, %r8; add.u64 %rd5, %rd4, %rd3;
  mul.wide.u32 %rd6, %r0, 8; add.s64 %rd7, %rd1, %rd6; st.global.u64 [%rd7], %rd5;
  ret;"""
SHARED = ".extern .shared .align 8 .b8 dynamic[];\n.shared .align 4 .b32 fixed[100];\n"


def test_static_and_dynamic_shared_memory() -> None:
    out = np.zeros(90, np.uint64)
    text = kernel(DYNAMIC, declarations=SHARED)
    run(text, 1, 90, out, shared=8 * 90)
    np.testing.assert_array_equal(out, 1001 * np.arange(90)[::-1])
    with pytest.raises(ptxemu.Fault, match=r"illegal address .* shared address"):
        run(text, 1, 90, out, shared=8 * 90 - 1)


REGISTERS = ["%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge",
             "%smid", "%nsmid", "%dynamic_smem_size"]  # fmt: skip


@pytest.mark.parametrize("block", [(70, 1, 1), (16, 5, 1), (3, 4, 5)])
def test_special_registers(block: tuple[int, int, int]) -> None:
    count = int(np.prod(block))
    body = """
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
  mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1; mul.wide.u32 %rd2, %r6, 4; add.s64 %rd1, %rd1, %rd2;
"""
    for number, name in enumerate(REGISTERS):
        body += f"  mov.u32 %r7, {name}; st.global.u32 [%rd1+{4 * count * number}], %r7;\n"
    out = np.zeros((len(REGISTERS), count), np.uint32)
    run(kernel(body + "  ret;"), 1, block, out, shared=48)
    rank = np.arange(count)
    lane, ones = rank % 32, 2**32 - 1
    below = (1 << lane) - 1
    values = dict(zip(REGISTERS, out))
    np.testing.assert_array_equal(values["%laneid"], lane)
    np.testing.assert_array_equal(values["%warpid"], rank // 32)
    assert np.all(values["%nwarpid"] >= (count + 31) // 32)
    np.testing.assert_array_equal(values["%lanemask_eq"], 1 << lane)
    np.testing.assert_array_equal(values["%lanemask_lt"], below)
    np.testing.assert_array_equal(values["%lanemask_le"], below | 1 << lane)
    np.testing.assert_array_equal(values["%lanemask_gt"], ones & ~(below | 1 << lane))
    np.testing.assert_array_equal(values["%lanemask_ge"], ones & ~below)
    assert np.all(values["%smid"] < values["%nsmid"])
    np.testing.assert_array_equal(values["%dynamic_smem_size"], 48)


def test_clocks_go_forward() -> None:
    body = """
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, %clock64; mov.u64 %rd3, %globaltimer;
  mov.u32 %r1, %clock; mov.u32 %r2, %clock_hi;
  mov.u64 %rd4, %clock64; mov.u64 %rd5, %globaltimer;
  setp.ge.u64 %p1, %rd4, %rd2; setp.ge.and.u64 %p1, %rd5, %rd3, %p1;
  selp.u32 %r3, 1, 0, %p1; st.global.u32 [%rd1], %r3;
  ret;"""
    out = np.zeros(1, np.uint32)
    run(kernel(body), 1, 32, out)
    assert out[0] == 1
