"""``Device(guard=...)``: what accesses around allocations do."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.device.arena import CUDA_SLACK, Arena
from tests.support.kernel_tools import kernel

PAGE = 4096
SIZES = (1, 100, 256, PAGE, PAGE + 4, 1 << 20)

COPY = kernel("ld.param.u64 %rd1, [to]; ld.param.u64 %rd2, [from]; ld.global.u8 %r1, [%rd2]; st.global.u8 [%rd1], %r1; ret;",
              ".param .u64 to, .param .u64 from")  # fmt: skip


def copy(device: ptxemu.Device, to: int, source: int) -> None:
    ptxemu.loads(COPY, device=device)["k"][1, 1](to, source)


@pytest.fixture(scope="module", params=["jit", "interpreter"])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device("64 MiB", guard="cuda", engine=request.param)


@pytest.mark.parametrize("size", SIZES)
def test_slack_is_memory(device, size):
    data, out = device.empty(size, "u1"), device.empty(4, "u1")
    data.array[:] = out.array[:] = 7
    end = data.address + size
    for place in (data.address - 1, data.address - CUDA_SLACK, end, end + CUDA_SLACK - 1):
        copy(device, out.address, place)
        assert out.array[0] == 0
        copy(device, place, data.address)
        copy(device, out.address, place)
        assert out.array[0] == 7
    assert (data.array == 7).all()


def test_slack_ends(device):
    data = device.empty(PAGE, "u1")
    for place in (data.address - CUDA_SLACK - 2 * PAGE, data.address + CUDA_SLACK + 2 * PAGE):
        for arguments in ((data.address, place), (place, data.address)):
            with pytest.raises(ptxemu.Fault, match="illegal address"):
                copy(device, *arguments)


def test_slack_is_nobody_elses(device):
    """Each of neighbouring allocations has its own, also in memory that was used before."""
    for _ in range(3):
        buffers = [device.empty(1 + number * 900, "u1") for number in range(10)]
        for buffer in buffers:
            for place in (buffer.address - 8, buffer.address + buffer.nbytes + 8):
                copy(device, buffer.address, place)
                assert buffer.array[0] == 0
                buffer.array[:] = 9
                copy(device, place, buffer.address)
        assert all((buffer.array == 9).all() for buffer in buffers)
        for buffer in buffers:
            buffer.free()


def test_variables_have_slack(device):
    module = ptxemu.loads(COPY.replace(".visible", ".global .u32 table[8];\n.visible", 1), device=device)
    table = module.get_global("table")
    module["k"][1, 1](table.address, table.address + 32)
    module["k"][1, 1](table.address, table.address - 1)


def test_strict_is_the_default():
    for device in (ptxemu.Device("64 MiB"), ptxemu.Device("64 MiB", guard="strict")):
        data = device.empty(PAGE, "u1")
        for place in (data.address - 1, data.address + PAGE):
            with pytest.raises(ptxemu.Fault, match="illegal address"):
                copy(device, data.address, place)


def test_messages_do_not_count_slack(device):
    data = device.to_device(np.zeros(PAGE, "u1"), "data")
    place = data.address + PAGE + CUDA_SLACK + 10
    with pytest.raises(ptxemu.Fault, match=rf"{CUDA_SLACK + 10} bytes past the end of `data` \({PAGE} bytes"):
        copy(device, data.address, place)


def test_slack_counts_and_is_given_back():
    arena = Arena(1 << 20)
    arena.set_slack(CUDA_SLACK)
    addresses = [arena.alloc(100) for _ in range(7)]
    assert 7 * 2 * CUDA_SLACK <= arena.used <= 1 << 20
    with pytest.raises(ptxemu.InputError, match="out of device memory"):
        arena.alloc(100)
    for address in addresses:
        arena.free(address)
    assert arena.used == 0


@pytest.mark.parametrize("align", [1, PAGE, 1 << 16, 4 << 20])
def test_alignment_with_slack(align):
    arena = Arena(1 << 28)
    arena.set_slack(CUDA_SLACK)
    for size in SIZES:
        address = arena.alloc(size, align)
        assert address % max(align, 256) == 0
        view = arena.view(address, size)
        assert not view.any()
        view[:] = 1


@pytest.mark.parametrize("guard", ["none", "", 1, None, ["cuda"]])
def test_other_guards_are_refused(guard):
    with pytest.raises(ptxemu.InputError, match="guard must be one of strict, cuda"):
        ptxemu.Device("1 MiB", guard=guard)
