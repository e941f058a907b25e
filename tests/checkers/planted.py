"""Kernels with planted errors, and what a device's checkers say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import ptxemu
from ptxemu.checkers.findings import Finding
from tests.support.kernel_tools import Extent, kernel

Fixture = Callable[[], Iterator[ptxemu.Device]]


def checked_device(check: str, **options: Any) -> Fixture:
    """A fixture: a device for the tests of a module, with a checker."""

    @pytest.fixture(scope="module")
    def device() -> Iterator[ptxemu.Device]:
        with ptxemu.Device(memory="64 MiB", check=check, **options) as made:
            yield made

    return device


START = "ld.param.u64 %rd1, [x]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mul.wide.u32 %rd2, %r1, 4;\n"
"""x and y into %rd1 and %rd3; %r1 = the thread, %r2 = the block, %rd2 = 4 * %r1."""


def program(body: str, declarations: str = "") -> str:
    """A module whose kernel ``k(x, y)`` has the instructions, each on a line of its own, from line 8 on."""
    statements = [line.strip() for line in body.split(";") if line.strip()]
    lines = "\n".join(line if line == "}" else f"{line};" for line in statements)
    return kernel(START + "ld.param.u64 %rd3, [y];\n" + lines + "\nret;", ".param .u64 x, .param .u64 y", declarations)


def found(
    device: ptxemu.Device,
    text: str,
    *args: object,
    grid: int | Extent = 1,
    block: int | Extent = 32,
    shared: int = 0,
    cluster: int = 1,
) -> list[Finding]:
    """What one launch does wrong."""
    assert device.checks is not None
    device.checks.clear()
    ptxemu.loads(text, filename="test.ptx", device=device, opt=0)["k"][grid, block](*args, shared=shared, cluster=cluster)
    return device.checks.findings


def messages(findings: Sequence[Finding]) -> list[str]:
    """Message, source text, first thread and count of each, in one line."""
    return [f"{one.message} | {one.lines[-1].text} | {one.block[0]}.{one.thread[0]} {one.count}x" for one in findings]
