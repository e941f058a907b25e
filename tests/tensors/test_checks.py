"""Checkers see copies of tensors: those that nobody has waited for, and what they write."""

from __future__ import annotations

import pytest

import ptxemu
from tests.tensors.kernels import launch, load_text, store_text
from tests.tensors.test_copies import numbers

WAIT = "WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %d5; @!%p2 bra WAIT;"
GROUP = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
WRITE = "st.shared.u32 [box+128], 1;"


def found(text: str, check: str) -> list[str]:
    device = ptxemu.Device(memory="64 MiB", workers=1, check=check)
    made = device.tensor_map(device.to_device(numbers((12, 32))), (4, 8))
    launch(device, text, made, (4, 2), bytes=128)
    return [str(finding) for finding in device.checks.findings]


@pytest.mark.parametrize("check", ["race", "memory"])
@pytest.mark.parametrize("text", [load_text(2), store_text(2)])
def test_nothing_is_wrong(check, text):
    assert found(text, check) == []


def test_a_box_that_nobody_waits_for():
    (race,) = found(load_text(2).replace(WAIT, ""), "race")
    assert "read of shared memory at 0x80, which a copy is writing" in race


def test_a_box_that_changes_while_it_is_copied():
    (race,) = found(store_text(2).replace(GROUP, WRITE), "race")
    assert "shared memory at 0x80, which a copy is reading" in race


def test_a_box_has_been_written():
    (blank,) = found(load_text(2), "init")
    assert "shared memory at 0x0, which nobody has written" in blank
