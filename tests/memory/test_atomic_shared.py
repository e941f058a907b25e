"""Atomics on shared memory whose addresses compiled code tests: lanes that are off or share words, and addresses outside."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel
from tests.support.processors import without_avx512

DECLARATIONS = ".shared .align 8 .b8 table[512];\n"
PARAMETERS = ".param .u64 in, .param .u64 out, .param .u32 n"
HEAD = """
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, table;
  shl.b32 %r4, %r2, 2; add.u32 %r5, %r3, %r4; mov.u32 %r6, 7; st.shared.u32 [%r5], %r6; st.shared.u32 [%r5+256], %r6;
  bar.sync 0; cvt.u64.u32 %rd3, %r4; add.u64 %rd1, %rd1, %rd3; ld.global.u32 %r7, [%rd1]; setp.lt.u32 %p1, %r2, %r1;
  add.u32 %r8, %r3, %r7;"""
TAIL = """
  bar.sync 0; add.u64 %rd2, %rd2, %rd3; ld.shared.u32 %r10, [%r5]; st.global.u32 [%rd2], %r10;
  ld.shared.u32 %r10, [%r5+256]; st.global.u32 [%rd2+256], %r10; st.global.u32 [%rd2+512], %r9; ret;"""


def launch(instruction: str, places: list[int], n: int = 64) -> tuple[np.ndarray, np.ndarray]:
    """The table and what each lane got, for lanes whose words are at these places, in bytes."""
    text = kernel(f"{HEAD} mov.u32 %r9, 0; {instruction} {TAIL}", PARAMETERS, DECLARATIONS)
    out = np.zeros(192, "u4")
    ptxemu.loads(text)["k"][1, 64](np.array(places, "u4"), out, n)
    return out[:128], out[128:]


PLACES = {
    "each its own": [4 * lane for lane in range(64)],
    "one": [40] * 64,
    "few": [4 * (lane * lane % 5) for lane in range(64)],
    "last": [508 - 4 * (lane % 3) for lane in range(64)],
}


@pytest.mark.parametrize("places", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("n", [64, 63, 33, 1, 0])
def test_lanes_are_served_in_order(places: list[int], n: int) -> None:
    """Lanes that are off have any address."""
    given = [*places[:n], *[0xFFFFFFF1 - lane for lane in range(64 - n)]]
    table, old = np.full(128, 7, "u4"), np.zeros(64, "u4")
    for lane, place in enumerate(given[:n]):
        old[lane] = table[place // 4]
        table[place // 4] += lane + 1
    found = launch("add.u32 %r11, %r2, 1; @%p1 atom.shared.add.u32 %r9, [%r8], %r11;", given, n)
    np.testing.assert_array_equal(found[0], table)
    if n <= 32 or places == PLACES["each its own"]:  # else the order of warps shows
        np.testing.assert_array_equal(found[1], old)
    reduced, _ = launch("add.u32 %r11, %r2, 1; @%p1 red.shared.add.u32 [%r8], %r11;", given, n)
    np.testing.assert_array_equal(reduced, table)


@pytest.mark.parametrize("name", PLACES)
def test_lanes_are_served_without_avx512(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    without_avx512(monkeypatch, tmp_path)
    test_lanes_are_served_in_order(PLACES[name], 33)


@pytest.mark.parametrize("word", ["and", "or", "xor"])
@pytest.mark.parametrize("places", [PLACES["few"], PLACES["one"]], ids=["few", "one"])
def test_bits_of_words_that_lanes_share(word: str, places: list[int]) -> None:
    table = np.full(128, 7, "u4")
    for lane, place in enumerate(places):
        table[place // 4] = getattr(np, f"bitwise_{word}")(table[place // 4], np.uint32(lane * 5 + 1))
    found, _ = launch(f"mad.lo.u32 %r11, %r2, 5, 1; red.shared.{word}.b32 [%r8], %r11;", places)
    np.testing.assert_array_equal(found, table)


def test_sums_of_64_bits() -> None:
    places = [8 * (lane * lane % 5) for lane in range(64)]
    table = np.full(128, 7, "u4").view("u8")
    for lane, place in enumerate(places):
        table[place // 8] += np.uint64(lane << 31)
    found, _ = launch("cvt.u64.u32 %rd4, %r2; shl.b64 %rd4, %rd4, 31; red.shared.add.u64 [%r8], %rd4;", places)
    np.testing.assert_array_equal(found.view("u8"), table)


@pytest.mark.parametrize("word", ["add.u32", "and.b32", "or.b32", "xor.b32", "add.u64", "and.b64", "or.b64", "xor.b64"])
def test_all_lanes_have_one_value(word: str) -> None:
    places = [8 * (lane * lane % 5) for lane in range(64)]
    wide = word.endswith("64")
    instruction = f"mov.u32 %r11, 21; mov.u64 %rd5, 90194313237; red.shared.{word} [%r8], {'%rd5' if wide else '%r11'};"
    table = np.full(128, 7, "u4").view("u8" if wide else "u4")
    update = {"add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[word[:-4]]
    for place in places:
        at = place // table.itemsize
        table[at] = update(table[at], table.dtype.type(90194313237 if wide else 21))
    np.testing.assert_array_equal(launch(instruction, places)[0], table.view("u4"))


@pytest.mark.parametrize(("place", "message"), [(512, "illegal address"), (0xFFFFFFFC, "illegal address"), (2, "misaligned")])
@pytest.mark.parametrize("instruction", ["red.shared.max.u32 [%r8], 9;", "atom.shared.cas.b32 %r9, [%r8], 7, 8;"])
def test_lanes_before_the_one_that_faults(instruction: str, place: int, message: str) -> None:
    with pytest.raises(ptxemu.Fault, match=message) as caught:
        launch(instruction, [0] * 40 + [place] + [0] * 23)
    assert caught.value.details.lane == 8
