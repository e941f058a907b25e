"""cudaGraphSetConditional in kernels: a handle is the address of a word, which gets the value of a lane that calls."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

SET = kernel(
    """ld.param.u64 %rd1, [handles]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd1, %rd1, %rd2;
  ld.global.u64 %rd3, [%rd1]; add.u32 %r2, %r1, 100; setp.gt.u32 %p1, %r1, 40; @%p1 bra DONE;
  { .param .b64 h; .param .b32 v; st.param.b64 [h], %rd3; st.param.b32 [v], %r2; call.uni cudaGraphSetConditional, (h, v); }
DONE: ret;""",
    ".param .u64 handles",
    ".extern .func cudaGraphSetConditional (.param .b64 h, .param .b32 v);",
)


@pytest.fixture(params=["jit", "interpreter"])
def device(request):
    with ptxemu.Device("64 MiB", engine=request.param) as made:
        yield made


def test_lanes_set_the_words_of_their_handles(device):
    words = device.to_device(np.zeros(64, np.uint32))
    handles = words.address + 4 * np.arange(64, dtype=np.uint64)
    ptxemu.loads(SET, device=device)["k"][1, 64](handles)
    assert words.copy_to_host().tolist() == [100 + i if i <= 40 else 0 for i in range(64)]


def test_a_wild_handle_is_a_fault(device):
    with pytest.raises(ptxemu.Fault, match="illegal address"):
        ptxemu.loads(SET, device=device)["k"][1, 1](np.array([0x123450], np.uint64))
