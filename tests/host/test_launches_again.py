"""Launches that follow each other are made of what the last one was, unless something is new."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import ptxemu
from ptxemu import InputError
from tests.support.kernel_tools import kernel

SIZES = kernel(
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %dynamic_smem_size; mov.u32 %r2, %nctaid.x; "
    "st.global.v2.u32 [%rd1], {%r1, %r2}; mov.u32 %r5, %tid.x; setp.eq.u32 %p1, %r5, 0; @%p1 red.global.add.u32 [%rd1+8], 1;"
)


def sizes(launcher: ptxemu.Launcher, **options: object) -> list[int]:
    """Dynamic shared memory, blocks of the grid, and blocks that ran."""
    out = np.zeros(4, np.uint32)
    launcher(out, **options)
    return [int(number) for number in out[:3]]


def test_each_has_its_own_terms() -> None:
    module = ptxemu.loads(SIZES, tier="best")
    launcher = module["k"][3, 32]
    for _ in range(2):
        assert sizes(launcher) == [0, 3, 3]
        assert sizes(launcher, shared=512) == [512, 3, 3]
        assert sizes(launcher, shared=np.int64(64)) == [64, 3, 3]
        assert sizes(launcher.part(1, 2)) == [0, 3, 1]
        assert sizes(launcher, cooperative=True) == [0, 3, 3]
        assert sizes(launcher, cluster=3) == [0, 3, 3]
        assert sizes(module["k"][(2,), 32]) == [0, 2, 2]


def test_what_is_wrong_is_wrong_again() -> None:
    launcher = ptxemu.loads(SIZES, tier="best")["k"][1, 32]
    for _ in range(2):
        assert sizes(launcher) == [0, 1, 1]
        for shared in (-1, "1", np.zeros(2), 1 << 40):
            with pytest.raises(InputError, match="shared"):
                sizes(launcher, shared=shared)


def test_nothing_keeps_a_module_that_has_launched() -> None:
    """Its memory on the device is free at once."""
    module = ptxemu.loads(SIZES, tier="best")
    for _ in range(2):
        sizes(module["k"][1, 32])
    seen = weakref.ref(module)
    gc.disable()
    try:
        del module
        assert seen() is None
    finally:
        gc.enable()


def test_output_goes_where_each_launch_says() -> None:
    text = kernel(
        "mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; { .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %rd1; "
        "st.param.b64 [v], 0; call.uni (r), vprintf, (f, v); }",
        ".param .u64 unused",
        ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);\n.global .align 1 .b8 text[3] = {111, 107, 0};",
    )
    launcher = ptxemu.loads(text, tier="best")["k"][1, 1]
    first: list[str] = []
    second: list[str] = []
    for taken in (first, second, first):
        launcher(0, printf=taken.append)
    assert ("".join(first), "".join(second)) == ("okok", "ok")
