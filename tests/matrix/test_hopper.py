"""Matrix multiplications have the bits that an H200 gave them, and so have the models of the tests."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.matrix.hopper_sets import Measured, computed, modelled, samples

SETS = samples()


def bits(found: np.ndarray, like: np.ndarray) -> np.ndarray:
    return found.astype(like.dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_a_measured_set(one: Measured) -> None:
    np.testing.assert_array_equal(bits(computed(one, "sm_90"), one.d), one.d)


@pytest.mark.parametrize("one", SETS, ids=lambda one: one.name)
def test_the_models_meet_it(one: Measured) -> None:
    np.testing.assert_array_equal(bits(modelled(one), one.d), one.d)


@pytest.mark.parametrize("one", [one for one in SETS if not one.is_wgmma], ids=lambda one: one.name)
def test_interpreted(one: Measured) -> None:
    with ptxemu.Device(engine="interpreter", like="sm_90") as device:
        np.testing.assert_array_equal(bits(computed(one, "sm_90", device), one.d), one.d)


def test_there_are_all_instructions() -> None:
    assert len(SETS) == 120 and sum(one.d.size for one in SETS) == 13136
