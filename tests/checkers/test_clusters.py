"""The checkers on clusters of several blocks, which touch each other's shared memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ptxemu
from ptxemu.checkers.findings import Finding
from tests.runtime import test_clusters as clusters
from tests.support.places import DATA, KERNELS

TEXT = (KERNELS / "clusters.ptx").read_text()
MODULE = DATA / "modules" / "distributed_90.ptx"
CHECKS = "memory,sync,race,init"
BARRIER = "barrier.cluster.arrive; barrier.cluster.wait;"


@pytest.fixture(scope="module")
def device() -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="64 MiB", workers=2, check=CHECKS) as made:
        yield made


def findings(device: ptxemu.Device, launch: Callable[[], object]) -> list[Finding]:
    assert device.checks is not None
    device.checks.clear()
    launch()
    return device.checks.findings


@pytest.mark.parametrize(
    "launch",
    [lambda: clusters.test_ring(4, 2), lambda: clusters.test_histogram(4, 2),
     lambda: clusters.test_remote_mbarriers_and_stores(4, 2), lambda: clusters.test_reduction_whose_other_blocks_exit(3),
     lambda: clusters.test_multicast(4, 0b1011),
     lambda: clusters.test_stores_reductions_and_copies_to_another_block(3, 2),
     lambda: clusters.test_spinning_on_what_another_block_writes(2), lambda: clusters.test_ring(1, 2)],
    ids=["ring", "histogram", "remote", "reduce", "multicast", "neighbours", "spin", "lone"],
)  # fmt: skip
def test_nothing_is_found(device: ptxemu.Device, monkeypatch: pytest.MonkeyPatch, launch: Callable[[], object]) -> None:
    monkeypatch.setattr(clusters, "module", lambda *workers: ptxemu.load(KERNELS / "clusters.ptx", device=device))
    assert findings(device, launch) == []


# ---------------------------------------------------------------- barriers that are left out


def kernel_of(name: str, change: Callable[[str], str], device: ptxemu.Device) -> ptxemu.Kernel:
    """A kernel of the tests' clusters, changed."""
    body = re.search(rf"\.visible \.entry {name}\(.*?\n}}\n", TEXT, re.S)
    assert body is not None
    changed = change(body[0])
    assert changed != body[0]
    return ptxemu.loads(TEXT.replace(body[0], changed), device=device)[name]


def without(number: int) -> Callable[[str], str]:
    """The barrier of that number in the text is left out."""

    def change(text: str) -> str:
        found = list(re.finditer(r"barrier\.cluster\.arrive[.\w]*; barrier\.cluster\.wait[.\w]*;", text))[number]
        return text[: found.start()] + text[found.end() :]

    return change


def relaxed(text: str) -> str:
    return text.replace("barrier.cluster.arrive.release", "barrier.cluster.arrive.relaxed")


def fenced(text: str) -> str:
    return text.replace("barrier.cluster.arrive.release", "fence.acq_rel.cluster; barrier.cluster.arrive.relaxed")


@pytest.mark.parametrize("change", [without(0), without(1), relaxed], ids=["first", "second", "relaxed"])
@pytest.mark.parametrize("size", [2, 3])
def test_rings_that_race(device: ptxemu.Device, change: Callable[[str], str], size: int) -> None:
    kernel = kernel_of("ring", change, device)
    out = np.zeros((2 * size, 64), np.uint32)
    seen = [one for one in findings(device, lambda: kernel[2 * size, 64](out, 3, cluster=size)) if one.check == "race"]
    assert seen
    for one in seen:
        assert one.other is not None
        assert one.block != one.other.block and one.block[0] // size == one.other.block[0] // size
        assert one.thread == one.other.thread
        assert "st.shared::cluster" in one.lines[-1].text or "st.shared::cluster" in one.other.lines[-1].text
        if "st.shared::cluster" in one.lines[-1].text:
            assert f"shared memory of block ({one.other.block[0]},0,0) at 0x" in one.message


def test_fences_release_before_relaxed_arrivals(device: ptxemu.Device) -> None:
    kernel = kernel_of("ring", fenced, device)
    out = np.zeros((4, 64), np.uint32)
    assert findings(device, lambda: kernel[4, 64](out, 3, cluster=2)) == []


def test_flags_of_a_scope_that_others_are_not_in(device: ptxemu.Device) -> None:
    kernel = kernel_of("spin", lambda text: text.replace(".cluster.shared", ".cta.shared"), device)
    out = np.zeros(4, np.uint32)
    seen = findings(device, lambda: kernel[4, 1](out, cluster=2))
    assert {one.check for one in seen} == {"race"} and all("shared memory" in one.message for one in seen)


WAITS = {
    "remote": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%r4], 0; @!%p bra WAIT;",
    "neighbours": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [bar], 0; @!%p bra WAIT;",
}


@pytest.mark.parametrize("name", WAITS)
def test_waits_for_what_others_send_that_are_left_out(device: ptxemu.Device, name: str) -> None:
    kernel = kernel_of(name, lambda text: text.replace(WAITS[name], ""), device)
    out = np.zeros((4, 6), np.uint32)
    seen = [one for one in findings(device, lambda: kernel[4, 1](out, cluster=4)) if one.check == "race"]
    assert seen and all(one.other is not None and one.block != one.other.block for one in seen)


# ---------------------------------------------------------------- what nvcc makes


def distributed(device: ptxemu.Device, name: str, size: int) -> list[Finding]:
    """One launch of a kernel, whose results are checked if it is right."""
    data = np.random.default_rng(size).integers(0, 1 << 16, 64 * 2 * size).astype(np.uint32)
    kernel = ptxemu.load(MODULE, device=device)[name]
    if name.startswith("sums"):
        out, wanted = np.zeros(2, np.uint32), data.reshape(2, -1).sum(axis=1)
        seen = findings(device, lambda: kernel[2 * size, 64](data, out, cluster=size))
    else:
        out, wanted = np.zeros(96, np.uint32), np.bincount(data % 96, minlength=96)
        seen = findings(device, lambda: kernel[2 * size, 64](data, data.size, out, 96, cluster=size, shared=96 * 4 // size))
    if name.endswith("right"):
        np.testing.assert_array_equal(out, wanted)
    return seen


@pytest.mark.parametrize("size", [1, 2, 8])
@pytest.mark.parametrize("kernel", ["histogram_right", "sums_right"])
def test_nothing_is_found_in_what_nvcc_makes(device: ptxemu.Device, kernel: str, size: int) -> None:
    assert distributed(device, kernel, size) == []


@pytest.mark.parametrize(
    "kernel", ["histogram_without_first", "histogram_without_last", "sums_without_first", "sums_without_last"]
)
def test_barriers_that_are_left_out(device: ptxemu.Device, kernel: str) -> None:
    seen = [one for one in distributed(device, kernel, 4) if one.check == "race"]
    assert [one for one in seen if one.other is not None and one.block != one.other.block]
    assert all("shared memory" in one.message for one in seen)


# ---------------------------------------------------------------- init

READ = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 first)
{
  .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .pred %p<4>;
  .shared .align 16 .b8 box[256];
  ld.param.u64 %d1, [out]; ld.param.u32 %r9, [first]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank;
  setp.ge.u32 %p1, %r1, %r9; shl.b32 %r3, %r1, 2; mov.u32 %r4, box; add.u32 %r3, %r3, %r4;
  xor.b32 %r5, %r2, 1; mapa.shared::cluster.u32 %r6, %r3, %r5;
  @%p1 st.shared::cluster.u32 [%r6], %r1;
  barrier.cluster.arrive; barrier.cluster.wait;
  ld.shared.u32 %r7, [%r3];
  ld.shared::cluster.u32 %r8, [%r6];
  add.u32 %r7, %r7, %r8; mov.u32 %r10, %ctaid.x; mad.lo.u32 %r10, %r10, 32, %r1; mul.wide.u32 %d2, %r10, 4; add.u64 %d1, %d1, %d2;
  st.global.u32 [%d1], %r7;
  barrier.cluster.arrive; barrier.cluster.wait;
  ret;
}
"""


def test_memory_that_another_block_has_written(device: ptxemu.Device) -> None:
    kernel, out = ptxemu.loads(READ, device=device)["k"], np.zeros((6, 32), np.uint32)
    assert findings(device, lambda: kernel[6, 32](out, 0, cluster=2)) == []
    np.testing.assert_array_equal(out, np.tile(2 * np.arange(32), (6, 1)))


def test_memory_that_no_block_has_written(device: ptxemu.Device) -> None:
    """Of 32 words the first 5 stay blank, in each block; as blocks before them have left them filled."""
    kernel, out = ptxemu.loads(READ, device=device)["k"], np.zeros((6, 32), np.uint32)
    own, others = sorted(findings(device, lambda: kernel[6, 32](out, 5, cluster=2)), key=lambda one: one.lines[-1].text)
    assert own.message == "4-byte read of shared memory at 0x0, which nobody has written"
    assert re.fullmatch(r"4-byte read of shared memory of block \([01],0,0\) at 0x0, which nobody has written", others.message)
    assert own.check == others.check == "init" and own.count == others.count == 6 * 5
