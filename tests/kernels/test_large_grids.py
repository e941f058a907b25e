"""Numbers of threads in grids with so many blocks that they have no 31 bits: code for full warps relies on it that they have."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import lib
from ptxemu.device.launch_limits import shape_of
from ptxemu.driver import compile
from ptxemu.ir.block_shape import is_full, kind_of, variant_of
from tests.support.block_shapes import BLOCKS
from tests.support.kernel_tools import kernel

# How far a thread's number is from that of its block's first, times 8, and its quotient by 32, as compilers write these for int.
QUOTIENTS = """
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mov.u32 %r9, %tid.y;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd2, %r4, 8;
  shr.s32 %r5, %r4, 31; shr.u32 %r6, %r5, 27; add.s32 %r7, %r4, %r6; shr.s32 %r8, %r7, 5;
  cvt.s64.s32 %rd3, %r8;
  mad.lo.u32 %r10, %r9, %r2, %r3; mul.wide.u32 %rd4, %r10, 16; ld.param.u64 %rd1, [out]; add.u64 %rd1, %rd1, %rd4;
  st.global.v2.u64 [%rd1], {%rd2, %rd3};
"""
LARGEST = lib.PE_MAX_GRID_X


@pytest.mark.parametrize("block", [(32, 1, 1), (1024, 1, 1), (64, 3, 1), (16, 4, 1)])
@pytest.mark.parametrize("blocks", [lib.PE_FEW_BLOCKS - 1, lib.PE_FEW_BLOCKS, lib.PE_FEW_BLOCKS + 1, 1 << 26, LARGEST])
def test_threads_of_the_last_block(blocks: int, block: tuple[int, int, int]) -> None:
    found = np.zeros((block[1], block[0], 2), np.int64)
    ptxemu.loads(kernel(QUOTIENTS))["k"][blocks, block].part(blocks - 1, blocks)(found)
    number = ((blocks - 1) * block[0] + np.arange(block[0])).astype(np.uint32).astype(np.int32).astype(np.int64)
    towards_zero = np.where(number < 0, -(-number // 32), number // 32)
    np.testing.assert_array_equal(found, np.broadcast_to(np.stack([8 * number, towards_zero], axis=-1), found.shape))


@pytest.mark.parametrize("block", BLOCKS)
def test_large_grids_take_code_that_is_not_for_full_warps(block: tuple[int, int, int]) -> None:
    few, many = (shape_of(blocks, block) for blocks in (lib.PE_FEW_BLOCKS - 1, lib.PE_FEW_BLOCKS))
    assert few.code_block == block
    assert variant_of(many.code_block) == kind_of(variant_of(block))
    assert not is_full(variant_of(many.code_block))


@pytest.mark.parametrize(
    "directives", ["", ".explicitcluster .reqnctapercluster 16", ".blocksareclusters .reqntid 64 .reqnctapercluster 16"]
)
def test_grids_of_clusters_have_more_blocks_than_a_launch_says(directives: str) -> None:
    text = (
        kernel(QUOTIENTS)
        .replace(")\n{", f") {directives}\n{{", 1)
        .replace(".target sm_80", ".target sm_90")
        .replace("8.0", "9.0")
    )
    module = compile.front(text)
    code = compile.kernel(module, "k", block=(64, 1, 1))
    assert is_full(code.facts.variant) != ("blocksareclusters" in directives)
