"""Stores of 256 bits that leave out elements: ``st.v8.b32 [a], {%r1, _, ...}`` (PTX ISA, "st")."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import HEADER, kernel

LANES = 64
PLACE = 8  # words
EVERY = 37  # masks are tried in steps
TOGETHER = 16  # stores in a kernel
ADDRESSES = {
    "row": "mov.u32 %r9, %r8;",
    "reversed": "mov.u32 %r9, %r8; xor.b32 %r9, %r9, 63;",
    "scattered": "mov.u32 %r9, %r8; mul.lo.u32 %r9, %r9, %r9; add.u32 %r9, %r9, %r8; shr.u32 %r9, %r9, 1; and.b32 %r9, %r9, 63;",
    "one": "mov.u32 %r9, 5;",
}
SEMANTICS = ["", ".global", ".volatile.global", ".relaxed.gpu", ".release.sys.global", ".cg", ".global.L1::evict_first"]


@pytest.fixture(scope="module", params=["jit", "interpreter"])
def device(request: pytest.FixtureRequest) -> ptxemu.Device:
    return ptxemu.Device("4 MiB", engine=request.param)


def text(stores: str, where: str, value: str = "") -> str:
    body = f"""
  ld.param.u64 %rd1, [out]; mov.u32 %r8, %tid.x; mov.u32 %r7, %ctaid.x; {ADDRESSES[where]}
  mul.wide.u32 %rd2, %r9, {4 * PLACE}; add.u64 %rd1, %rd1, %rd2;
  mul.lo.u32 %r1, %r8, 100; cvt.rn.f32.u32 %f1, %r1; cvt.u64.u32 %rd8, %r1; {value}
{stores}
  ret;"""
    return kernel(body, ".param .u64 out").replace(HEADER, ".version 9.0\n.target sm_100\n.address_size 64\n")


def places(where: str) -> list[int]:
    lanes = np.arange(LANES)
    found = {"row": lanes, "reversed": lanes ^ 63, "scattered": (lanes * lanes + lanes >> 1) & 63, "one": lanes * 0 + 5}
    return [int(place) for place in found[where]]


def words(mask: int) -> str:
    """The element k of lane i is 100 * i + k."""
    names = [f"%r{20 + k}" if mask >> k & 1 else "_" for k in range(PLACE)]
    return "{" + ", ".join(names) + "}"


SUMS = " ".join(f"add.u32 %r{20 + k}, %r1, {k};" for k in range(PLACE))


def store_of(mask: int, number: int) -> str:
    """The store of a mask, whose places are the ``number``-th ones of the array."""
    semantics = SEMANTICS[mask % len(SEMANTICS)]
    return f"  st{semantics}.v8.b32 [%rd1+{4 * LANES * PLACE * number}], {words(mask)};"


@pytest.mark.parametrize("where", ADDRESSES)
def test_every_mask(device: ptxemu.Device, where: str) -> None:
    """Those elements are stored that are there; the others keep what they are."""
    masks = range(1, 1 << PLACE, 1 if where == "row" and device.engine == "jit" else EVERY)
    for few in (masks[first : first + TOGETHER] for first in range(0, len(masks), TOGETHER)):
        stores = "\n".join(store_of(mask, number) for number, mask in enumerate(few))
        out = device.to_device(np.full((len(few), LANES, PLACE), 7, "u4"))
        ptxemu.loads(text(stores, where, SUMS), device=device)["k"][1, LANES](out)
        wanted = np.full((len(few), LANES, PLACE), 7, "u4")
        for number, mask in enumerate(few):
            there = [k for k in range(PLACE) if mask >> k & 1]
            for lane, place in enumerate(places(where)):
                wanted[number, place, there] = 100 * lane + np.array(there)
        wrong = np.flatnonzero((out.copy_to_host() != wanted).any(axis=(1, 2)))
        assert not wrong.size, [f"{few[number]:08b}" for number in wrong]


def test_types_literals_and_guards(device: ptxemu.Device) -> None:
    stores = """
  setp.lt.u32 %p1, %r8, 40;
  @%p1 st.global.v8.f32 [%rd1], {_, %f1, _, 0f3F800000, _, _, _, _};
  @!%p1 st.v4.b64 [%rd1], {%rd8, _, 9, _};
  st.global.L2::cache_hint.v4.s64 [%rd1], {_, _, _, %rd8}, 0;"""
    out = device.to_device(np.full((LANES, PLACE), 7, "u4"))
    ptxemu.loads(text(stores, "row"), device=device)["k"][1, LANES](out)
    wanted = np.full((LANES, PLACE), 7, "u4")
    lanes = np.arange(LANES)
    wanted[:40, 1], wanted[:40, 3] = (100 * lanes[:40]).astype("f4").view("u4"), 0x3F800000
    wanted[40:, :2] = (100 * lanes[40:]).astype("u8").view("u4").reshape(-1, 2)
    wanted[40:, 4:6] = 9, 0
    wanted[:, 6:] = (100 * lanes).astype("u8").view("u4").reshape(-1, 2)
    np.testing.assert_array_equal(out.copy_to_host(), wanted)


@pytest.mark.parametrize("offset", [4, 8, 16, 36])
def test_the_whole_place_is_aligned(device: ptxemu.Device, offset: int) -> None:
    """Whatever elements there are."""
    module = ptxemu.loads(text(f"  st.v8.b32 [%rd1+{offset}], {words(0b10000)};", "row", SUMS), device=device)
    with pytest.raises(ptxemu.Fault, match="misaligned address") as caught:
        module["k"][1, LANES](device.empty((2 * LANES, PLACE), "u4"))
    assert "32" in str(caught.value)


def test_variables_and_lanes_that_are_off(device: ptxemu.Device) -> None:
    stores = """
  setp.eq.u32 %p1, %r8, 63; @%p1 st.global.v8.b32 [v+32], {_, _, %r1, _, _, _, _, 5};
  setp.ge.u32 %p1, %r8, 64; @%p1 st.global.v8.b32 [%rd1+4], {_, _, %r1, _, _, _, _, 5};
  ld.global.u32 %r2, [v+40]; st.global.u32 [%rd1], %r2;"""
    made = text(stores, "row").replace(".address_size 64", ".address_size 64\n.global .align 32 .b8 v[64];")
    out = device.to_device(np.zeros((LANES, PLACE), "u4"))
    ptxemu.loads(made, device=device)["k"][1, LANES](out)
    assert out.copy_to_host()[63, 0] == 6300


def findings(checker: str, even: int, odd: int, size: int, offset: int = 0) -> int:
    """Of two blocks of 32 threads that store different elements."""
    stores = f"""  setp.eq.u32 %p1, %r7, 0;
  @%p1 st.global.v8.b32 [%rd1+{offset}], {words(even)};
  @!%p1 st.global.v8.b32 [%rd1+{offset}], {words(odd)};"""
    with ptxemu.Device("4 MiB", check=checker) as device:
        out = device.empty(size, "u4", "x")
        ptxemu.loads(text(stores, "row", SUMS), device=device)["k"][2, 32](out)
        assert device.checks is not None
        return sum(finding.count for finding in device.checks.findings)


def test_checkers_know_what_is_stored() -> None:
    """An array that ends amid the last place; elements that blocks store in turns, and one for which they race."""
    size = 32 * PLACE
    assert findings("memory", 0b00010101, 0b00001010, size - 3) == 0
    assert findings("memory", 0b00010101, 0b00001010, size - 3, offset=32) == 3 + 2
    assert findings("race", 0b01010101, 0b10101010, size) == 0
    assert findings("race", 0b01010101, 0b10101110, size) > 0
