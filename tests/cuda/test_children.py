"""Kernels that launch kernels: CUDA dynamic parallelism, in PTX as nvcc writes it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.cuda.test_driver import ONE, fails
from tests.support.driver_api import POINTER, call, context, function, get, launch, load, result, to_device, to_host

TAIL, FIRE_AND_FORGET = 3, 4

HEAD = """.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 f, .param .align 4 .b8 g[12],
  .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 b, .param .b64 s);
"""


def launching(kernel: str, grid: int, block: int, stream: int, *stores: str) -> str:
    """Launch a kernel; ``stores`` write arguments to [%buffer]. %made is the buffer, %result what the launch returned."""
    return f"""{{
  .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s; .param .b64 r;
  mov.u64 %kernel, {kernel};
  st.param.b64 [f], %kernel;
  st.param.b32 [g], {grid}; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
  st.param.b32 [b], {block}; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
  st.param.b32 [s], 0;
  call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
  ld.param.b64 %buffer, [r];
  }}
  setp.eq.u64 %none, %buffer, 0;
  mov.u32 %result, 701;
  @%none bra SKIP{kernel}{stream};
  {" ".join(stores)}
  {{
  .param .b64 q; .param .b64 t; .param .b32 e;
  st.param.b64 [q], %buffer; st.param.b64 [t], {stream};
  call.uni (e), __cudaCDP2LaunchDeviceV2, (q, t);
  ld.param.b32 %result, [e];
  }}
SKIP{kernel}{stream}:
"""


REGISTERS = """.reg .pred %none, %p; .reg .b64 %kernel, %buffer, %out, %at; .reg .b32 %result, %n, %i, %v, %t;
  ld.param.u64 %out, [out]; ld.param.u32 %n, [n];
"""

# puts n behind what is in the list at out: its length, its elements
APPEND = f""".visible .entry append(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  atom.global.add.u32 %i, [%out], 1;
  mad.wide.u32 %at, %i, 4, %out;
  st.global.u32 [%at+4], %n;
  ret; }}
"""
ARGUMENTS = ("st.u64 [%buffer], %out;", "st.u32 [%buffer+8], %n;")

ORDER = f"""{HEAD}{APPEND}
.visible .entry parent(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  mov.u32 %n, 9;
  {launching("append", 1, 1, TAIL, *ARGUMENTS)}
  mov.u32 %n, 1;
  {launching("append", 1, 1, 0, *ARGUMENTS)}
  mov.u32 %n, 2;
  {launching("nested", 1, 1, FIRE_AND_FORGET, *ARGUMENTS)}
  mov.u32 %n, 5;
  {launching("append", 2, 1, 4096, *ARGUMENTS)}
  atom.global.add.u32 %i, [%out], 1;
  mad.wide.u32 %at, %i, 4, %out;
  st.global.u32 [%at+4], 0;
  ret; }}
.visible .entry nested(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  mov.u32 %n, 4;
  {launching("append", 1, 1, TAIL, *ARGUMENTS)}
  mov.u32 %n, 3;
  {launching("append", 1, 1, 0, *ARGUMENTS)}
  atom.global.add.u32 %i, [%out], 1;
  mad.wide.u32 %at, %i, 4, %out;
  st.global.u32 [%at+4], 2;
  ret; }}
"""

# each thread of a level launches the next one; all count
TREE = f"""{HEAD}
.visible .entry tree(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  atom.global.add.u32 %i, [%out], 1;
  setp.eq.u32 %p, %n, 0;
  @%p bra END;
  sub.u32 %n, %n, 1;
  {launching("tree", 1, 2, 0, *ARGUMENTS)}
END:
  ret; }}
"""

MANY = f"""{HEAD}
.visible .entry add(.param .u64 out, .param .u32 n)
{{ {REGISTERS} atom.global.add.u32 %i, [%out], %n; ret; }}
.visible .entry parent(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  mov.u32 %n, %tid.x;
  {launching("add", 1, 1, 0, *ARGUMENTS)}
  setp.eq.u32 %p, %result, 0;
  selp.u32 %v, 1, 0, %p;
  atom.global.add.u32 %i, [%out+4], %v;
  ret; }}
"""

WRONG = f"""{HEAD}
.visible .global .align 8 .u64 kept;
.visible .entry large(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  {launching("large", 1, 2000, 0, *ARGUMENTS)}
  ret; }}
.visible .entry spoiled(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  {launching("spoiled", 1, 1, 0, *ARGUMENTS)}
  st.u64 [%buffer+-56], 12345;
  st.u64 [%buffer+-64], 77777;
  ret; }}
.visible .entry faults(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  setp.eq.u32 %p, %n, 0;
  @%p bra FAULT;
  mov.u32 %n, 0;
  {launching("faults", 1, 1, 0, *ARGUMENTS)}
  ret;
FAULT:
  mov.u64 %out, 64;
  st.global.u32 [%out], 1;
  ret; }}
"""


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


def zeros(count: int) -> int:
    return to_device(np.zeros(count, "u4"))


def test_all_is_done_before_the_grid_is_and_tails_come_last():
    kernel, out = function(load(ORDER), "parent"), zeros(16)
    launch(kernel, ONE, ONE, out, ctypes.c_int(0))
    count, *found = to_host(out, 16, "u4").tolist()
    assert found[:count] == [0, 1, 2, 3, 4, 5, 5, 9]


MOVES = f"""{HEAD}
.extern .func (.param .b32 r) __cudaCDP2MemcpyAsync (.param .b64 a, .param .b64 b, .param .b64 c, .param .b32 k, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync (.param .b64 a, .param .b32 b, .param .b64 c, .param .b64 s);
.visible .entry parent(.param .u64 out, .param .u32 n)
{{ {REGISTERS}
  mov.u32 %v, 0x1a5;
  add.u64 %at, %out, 17;
  {{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 s; .param .b32 r;
  st.param.b64 [a], %at; st.param.b32 [b], %v; st.param.b64 [c], 5000; st.param.b64 [s], 0;
  call.uni (r), __cudaCDP2MemsetAsync, (a, b, c, s); }}
  mov.u32 %v, 3;
  add.u64 %at, %out, 7001;
  {{ .param .b64 a; .param .b64 b; .param .b64 c; .param .b32 k; .param .b64 s; .param .b32 r;
  st.param.b64 [a], %at; st.param.b64 [b], %out; st.param.b64 [c], 3; st.param.b32 [k], %v; st.param.b64 [s], 0;
  call.uni (r), __cudaCDP2MemcpyAsync, (a, b, c, k, s); }}
  ret; }}
"""


def test_kernels_set_and_copy_bytes():
    """As many as they say, of any alignment."""
    host = (np.arange(8000) % 251).astype("u1")
    kernel, out = function(load(MOVES), "parent"), to_device(host)
    launch(kernel, ONE, ONE, out, ctypes.c_int(0))
    host[17:5017] = 0xA5
    host[7001:7004] = host[:3]
    np.testing.assert_array_equal(to_host(out, 8000, "u1"), host)


def test_what_comes_in_the_stream_waits_for_all_of_it():
    kernel, out, copy = function(load(TREE), "tree"), zeros(1), zeros(1)
    stream = get(POINTER, "cuStreamCreate", 1)
    arguments = [ctypes.c_uint64(out), ctypes.c_int(6)]
    places = (POINTER * 2)(*map(ctypes.addressof, arguments))
    for _ in range(3):
        call("cuLaunchKernel", kernel, 1, 1, 1, 2, 1, 1, 0, stream, places, None)
        call("cuMemcpyDtoDAsync_v2", copy, out, 4, stream)
    call("cuStreamSynchronize", stream)
    assert to_host(copy, 1, "u4").tolist() == [3 * (2**8 - 2)]


def test_two_streams_at_once():
    kernel = function(load(TREE), "tree")
    outs, streams = [zeros(1) for _ in range(4)], [get(POINTER, "cuStreamCreate", 1) for _ in range(4)]
    for _ in range(5):
        for out, stream in zip(outs, streams, strict=True):
            arguments = [ctypes.c_uint64(out), ctypes.c_int(4)]
            places = (POINTER * 2)(*map(ctypes.addressof, arguments))
            call("cuLaunchKernel", kernel, 1, 1, 1, 2, 1, 1, 0, stream, places, None)
    for out, stream in zip(outs, streams, strict=True):
        call("cuStreamSynchronize", stream)
        assert to_host(out, 1, "u4").tolist() == [5 * (2**6 - 2)]


def test_many_and_memory_comes_back():
    kernel, out = function(load(MANY), "parent"), zeros(2)
    for repeat in range(1, 21):
        launch(kernel, (4, 1, 1), (256, 1, 1), out, ctypes.c_int(0))
        assert to_host(out, 2, "u4").tolist() == [repeat * 4 * 255 * 128, repeat * 1024]


def test_no_memory_for_more_is_an_error_of_the_call():
    call("cuCtxSetLimit", 2, 64 << 10)
    kernel, out = function(load(MANY), "parent"), zeros(2)
    launch(kernel, (8, 1, 1), (256, 1, 1), out, ctypes.c_int(0))
    assert 0 < to_host(out, 2, "u4")[1] < 2048


@pytest.mark.parametrize(
    ("kernel", "error", "said"),
    [
        ("large", "LAUNCH_FAILED", "a launch that a kernel has made"),
        ("spoiled", "LAUNCH_FAILED", "a launch that a kernel has made"),
        ("faults", "ILLEGAL_ADDRESS", "faults"),
    ],
)
def test_what_goes_wrong_stays_with_the_context(kernel, error, said, capfd):
    launch(function(load(WRONG), kernel), ONE, ONE, zeros(1), ctypes.c_int(1))
    assert result("cuCtxSynchronize") == error
    assert said in capfd.readouterr().err


def test_other_functions_are_said_to_be_missing(capfd):
    text = ORDER.replace("LaunchDeviceV2", "FuncGetAttributes")
    with fails("INVALID_PTX"):
        load(text)
    assert "'__cudaCDP2FuncGetAttributes' is not defined" in capfd.readouterr().err
