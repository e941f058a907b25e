"""Sums of matrices have the bits that hardware was measured to give, by architecture."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.ir.numerics import NUMERICS, numerics_of
from ptxemu.text.errors import InputError
from tests.matrix.test_matrix import kernel
from tests.support.tensor_core_sets import Measured, computed, instruction, samples

SETS = samples()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_a_measured_set(one: Measured) -> None:
    np.testing.assert_array_equal(computed(one, kernel(instruction(one))), one.d)


def test_there_are_all_sets() -> None:
    assert len(SETS) == 44 and {one.gpu for one in SETS} == {"V100", "A100", "A2", "Ada", "L40S", "H100", "H200", "B200"}


SUM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
ONE, LARGE = 0x3C00, 0x4B800000 + 1  # 1 in f16; 2^24 + 2 in f32


def _sum(**options: object) -> int:
    """C = 2^24 + 2 and sixteen products of 1/2 * 1: what an architecture keeps of them behind C's last bit."""
    a, b = (np.full((1, count * 32), 0x38003800 if count == 4 else 0x3C003C00, np.uint32) for count in (4, 2))
    c, d = np.full((1, 128), LARGE, np.uint32), np.zeros((1, 128), np.uint32)
    ptxemu.loads(kernel(SUM), **options)["k"][1, 32](a, b, c, d)
    assert len(set(d[0].tolist())) == 1
    return int(d[0, 0]) - LARGE


def test_whose_sums_a_program_gets() -> None:
    exact, hopper = 4, 4
    assert _sum(like="exact") == exact
    assert _sum() == _sum(like="sm_90") == hopper  # .target sm_90 keeps two bits behind C's last
    assert _sum(like="sm_80") == 0  # one bit behind the point of 2^24 is 1: halves are lost
    with ptxemu.Device(memory="64 MiB", like="sm_86") as device:
        assert _sum(device=device) == 0
        assert _sum(device=device, like="exact") == exact
    with ptxemu.Device(memory="64 MiB", engine="interpreter", like="sm_80") as device:
        assert _sum(device=device) == 0


def test_sums_of_the_largest_significands() -> None:
    """32 products of 1.875 * 1.875 of e4m3, and C; no sum of sixteen at once with C before them may leave 32 bits."""
    text = kernel("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    below_two = np.float32(2 - 2**-23)
    for sign, b in ((1, 0x3F3F3F3F), (-1, 0xBFBFBFBF)):
        left, right = np.full((1, 128), 0x3F3F3F3F, np.uint32), np.full((1, 64), b, np.uint32)
        c, d = np.full((1, 128), sign * below_two, np.float32), np.zeros((1, 128), np.float32)
        ptxemu.loads(text, like="sm_90")["k"][1, 32](left, right, c, d)
        assert set(d[0].tolist()) == {sign * float(np.float32(32 * 1.875**2 + float(below_two)))}


def test_a_sum_of_f16_that_overflows_stays_infinite() -> None:
    """Eight products of 256 * 256 overflow, which eight of -256 * 256 take back if all are added at once."""
    left = np.repeat(np.array([0x5C005C00, 0xDC00DC00], np.uint32), 64)[None]  # of 256 in the first half of k, then -256
    right, c = np.full((1, 64), 0x5C005C00, np.uint32), np.full((1, 64), 0x3C003C00, np.uint32)
    for like, expected in {"sm_70": 0x7C007C00, "sm_80": 0x7C007C00, "sm_90": 0x3C003C00}.items():
        d = np.zeros((1, 64), np.uint32)
        text = kernel("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
        ptxemu.loads(text, like=like)["k"][1, 32](left, right, c, d)
        assert set(d[0].tolist()) == {expected}, like


@pytest.mark.parametrize("like", ["sm_1", "ampere", "sm_89x", 89, None, "exact "])
def test_what_nothing_can_be_like(like: object) -> None:
    with pytest.raises(InputError, match="like must be an architecture such as sm_89 or exact"):
        ptxemu.Device(like=like)  # type: ignore[arg-type]


def test_architectures_between_those_that_are_known() -> None:
    first = {target: numerics_of("", (target,)).first for target in ("sm_72", "sm_86", "sm_87", "sm_90a", "sm_103f", "sm_121")}
    assert first == {"sm_72": 70, "sm_86": 80, "sm_87": 80, "sm_90a": 90, "sm_103f": 100, "sm_121": 120}
    assert numerics_of("sm_89", ("sm_70",)).first == 89
    assert numerics_of("", ()).first == numerics_of("", ("sm_52",)).first == 80
    assert set(NUMERICS) == {70, 75, 80, 89, 90, 100, 120}
