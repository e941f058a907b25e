"""Loads in which groups of lanes share a few places at constant distances, as a row of coefficients for each row of a block."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

PARAMETERS = ".param .u64 data, .param .u64 out, .param .u32 rows"


def text(stride: int, kind: str = "u32", guard: str = "@%p1 ", offset: int = 0) -> str:
    """out[t] = the element that lies tid.y * stride bytes behind the start of data, or 7 in rows that take no part."""
    value, seven = ("%rd5", "mov.u64 %rd5, 7;") if kind == "u64" else ("%r5", "mov.u32 %r5, 7;")
    size = int(kind[1:]) // 8
    return kernel(
        f"""
  ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [out]; ld.param.u32 %r9, [rows];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
  mul.wide.u32 %rd3, %r1, {stride}; add.u64 %rd1, %rd1, %rd3; mul.wide.u32 %rd4, %r3, {size}; add.u64 %rd2, %rd2, %rd4;
  {seven} setp.lt.u32 %p1, %r1, %r9;
  {guard}ld.global.{kind} {value}, [%rd1+{offset}]; st.global.{kind} [%rd2], {value}; ret;""",
        PARAMETERS,
    )


@pytest.mark.parametrize("block", [(8, 4), (16, 2), (8, 8), (4, 8), (16, 6)])
@pytest.mark.parametrize(("kind", "stride"), [("u32", 4), ("u32", 32), ("u32", 1024), ("u64", 8), ("u64", 72)])
@pytest.mark.parametrize("missing", [0, 1, 3])
def test_rows_of_a_block(block: tuple[int, int], kind: str, stride: int, missing: int) -> None:
    width, height = block
    size = int(kind[1:]) // 8
    data = np.random.default_rng(stride).integers(0, 1 << 32, height * stride // size + 8).astype(f"u{size}")
    out = np.zeros((height, width), f"u{size}")
    rows = max(0, height - missing)
    ptxemu.loads(text(stride, kind, offset=2 * size))["k"][1, block](data, out, rows)
    expected = np.where(np.arange(height) < rows, data[np.arange(height) * stride // size + 2], 7)
    np.testing.assert_array_equal(out, np.repeat(expected[:, None], width, axis=1))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("rows", [0, 1, 2, 4])
def test_rows_that_take_no_part_are_not_read(rows: int, engine: str) -> None:
    """Only the first one is in pages that are mapped."""
    with ptxemu.Device(memory="64 MiB", engine=engine) as device:
        data, out = device.to_device(np.full(1024, 5, np.uint32)), device.to_device(np.zeros((4, 8), np.uint32))
        launcher = ptxemu.loads(text(1 << 22), device=device)["k"][1, (8, 4)]
        if rows <= 1:
            launcher(data, out, rows)
            np.testing.assert_array_equal(out.copy_to_host(), np.where(np.arange(4)[:, None] < rows, 5, np.full((4, 8), 7)))
            return
        with pytest.raises(ptxemu.Fault, match="illegal address"):
            launcher(data, out, rows)
