"""Sums that each worker makes in memory of its own, where nothing in a kernel can tell when they come to device memory."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

CTAS, THREADS = 512, 128
COUNT = CTAS * THREADS
DATA = np.random.default_rng(7).integers(0, 1 << 32, COUNT, dtype=np.uint32)
PARAMETERS = ".param .u64 data, .param .u64 out, .param .u64 other"
LOAD = "ld.global.nc.u32 %r1, [%rd1];"
SUM = "red.global.add.u32 [%rd4], %r2;"
FOR_OTHERS = ("volatile.global", "relaxed.gpu.global", "acquire.gpu.global", "global.cg", "global.cv")
"""Loads that programs make of what other blocks write meanwhile."""
EACH = """mov.u32 %r9, 0; mov.u64 %rd4, %rd2; mov.u32 %r2, 1;
LOOP: ld.global.u32 %r1, [%rd1]; add.u64 %rd1, %rd1, 4; add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 9; @%p2 bra LOOP;"""
"""A loop over nine words."""


def text(update: str = SUM, load: str = LOAD, bins: int = 256) -> str:
    """Adds one plus the thread's number modulo 8 to the word of ``out`` that its datum says, in rd4; rd3 is another array."""
    return kernel(
        GLOBAL_INDEX
        + f"""
  ld.param.u64 %rd1, [data]; ld.param.u64 %rd2, [out]; ld.param.u64 %rd3, [other];
  mul.wide.u32 %rd5, %r0, 4; add.u64 %rd1, %rd1, %rd5;
  {load}
  and.b32 %r1, %r1, {bins - 1}; and.b32 %r2, %r0, 7; add.u32 %r2, %r2, 1; cvt.u64.u32 %rd6, %r2;
  mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd4, %rd2;
  {update}""",
        PARAMETERS,
    )


def expected(bins: int = 256, chosen: np.ndarray | None = None) -> np.ndarray:
    weights = np.arange(COUNT) % 8 + 1
    chosen = np.ones(COUNT, bool) if chosen is None else chosen
    return np.bincount((DATA % bins)[chosen], weights[chosen], bins).astype(np.uint32)


def run(
    program: str, out: np.ndarray, other: np.ndarray | None = None, workers: int = 2, check: str = "", times: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """``times`` as many threads, with the same data and weights again."""
    device = ptxemu.Device(workers=workers, check=check or None)
    data = np.tile(DATA, times)
    arrays = [device.to_device(array) for array in (data, out, np.zeros(8, np.uint32) if other is None else other)]
    ptxemu.loads(program, filename="test.ptx", device=device)["k"][times * CTAS, THREADS](*arrays)
    assert device.checks is None or not device.checks.findings
    return arrays[1].copy_to_host(), arrays[2].copy_to_host()


def proved(program: str) -> bool:
    """Whether the code of the first atomic says that it does not matter when its sum comes to memory."""
    text = str(compile.emit(compile.front(program), "k", compile.Options(cpu="x86-64-v4"), "llvm"))
    found = next(line for line in text.splitlines() if "constant { i32, i16, i16, i16, i16, i32, i32, i32, i32 }" in line)
    return found.rstrip("} ").endswith("i32 1, i32 0")


@pytest.mark.parametrize(
    ("program", "sums"),
    [
        (text(), True),
        (text("atom.global.add.u32 %r9, [%rd4], %r2;"), True),  # nobody reads the old value
        (text("red.global.add.u64 [%rd3], %rd6;"), True),
        (text("@%p1 red.global.add.u32 [%rd4], %r2; bar.sync 0;"), True),
        (text(load="ld.global.u32 %r1, [%rd1];"), True),  # of what may be the sums, which is tested
        (text(load="ld.global.v2.u32 {%r1, %r9}, [%rd2];"), True),
        (text(SUM + "ld.u32 %r9, [%rd4]; red.global.add.u32 [%rd3], %r9;"), True),
        (text(SUM + "st.global.u32 [%rd3], %r2;"), True),
        *[(text(load=f"ld.{how}.u32 %r1, [%rd1];"), False) for how in FOR_OTHERS],
        (text(SUM + "st.volatile.global.u32 [%rd3], %r2;"), False),
        (text(load="LOOP: ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p2, %r1, 0; @%p2 bra LOOP;"), False),  # may wait for a sum
        (text(load=EACH), False),  # a test in a loop that makes no sums
        (text(load=EACH.replace("add.u32", SUM + "add.u32")), True),
        (text("atom.global.add.u32 %r9, [%rd4], %r2; red.global.add.u32 [%rd3], %r9;"), False),
        (text(SUM + "membar.gl;"), False),  # another launch may see in which order sums come
        (text("red.release.gpu.global.add.u32 [%rd4], %r2;"), False),
        (text("red.relaxed.sys.global.add.u32 [%rd4], %r2;"), False),
        (text("red.global.max.u32 [%rd4], %r2;"), False),
        (text("mov.b32 %f1, %r2; red.global.add.f32 [%rd4], %f1;"), False),  # whose order is part of the result
        (text(SUM + "red.global.xor.b32 [%rd3], %r2;"), False),
    ],
)
def test_which_kernels_do_nothing_but_add(program: str, sums: bool) -> None:
    assert proved(program) == sums


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize(("bins", "times"), [(1, 1), (256, 1), (1 << 14, 1), (1 << 17, 1), (1 << 17, 3), (1 << 21, 33)])
def test_a_histogram(workers: int, bins: int, times: int) -> None:
    """On top of what is there already, also where all lanes add to one word, or where that of three workers is too large."""
    before = np.arange(bins, dtype=np.uint32) + 0xFFFFFF00
    found, _ = run(text(bins=bins), before, workers=workers, times=times)
    np.testing.assert_array_equal(found, before + times * expected(bins))


def test_code_that_tells_of_no_accesses_adds_as_other_code_does() -> None:
    """That for the checker `sync`."""
    module = compile.front(text(), "test.ptx")
    plain, told = (
        compile.lower(module, module.functions["k"], "row", compile.Options(observed=observed)).text
        for observed in ("", "members")
    )
    assert told == plain


@pytest.mark.parametrize("check", ["memory", "race", "init", "sync", "all"])
def test_a_histogram_that_is_checked(check: str) -> None:
    before = np.arange(256, dtype=np.uint32)
    np.testing.assert_array_equal(run(text(), before, check=check)[0], before + expected())


@pytest.mark.parametrize(
    ("check", "update", "found"),
    [
        ("memory", "add.u64 %rd4, %rd4, 4; " + SUM, "after"),  # the last bin lies behind the array
        ("init", "red.global.add.u32 [%rd3], %r2;", "nobody has written"),
        ("race", "st.global.u32 [%rd3], %r2;" + SUM, "race"),
    ],
)
def test_checkers_see_sums(check: str, update: str, found: str) -> None:
    device = ptxemu.Device(workers=2, check=check)
    arrays = [device.to_device(DATA), device.to_device(np.zeros(256, np.uint32)), device.empty(8, np.uint32)]
    ptxemu.loads(text(update), device=device)["k"][CTAS, THREADS](*arrays)
    assert device.checks is not None and any(found in str(one) for one in device.checks.findings)


def test_some_lanes() -> None:
    program = text("and.b32 %r3, %r0, 5; setp.eq.u32 %p1, %r3, 5; @%p1 " + SUM)
    np.testing.assert_array_equal(run(program, np.zeros(256, np.uint32))[0], expected(chosen=np.arange(COUNT) & 5 == 5))


def test_sums_in_two_arrays_and_of_two_widths() -> None:
    program = text(SUM + "red.global.add.u64 [%rd3], %rd6; red.global.add.u32 [%rd3+16], %r2;")
    out, other = run(program, np.zeros(256, np.uint32))
    np.testing.assert_array_equal(out, expected())
    total = int(expected().sum())
    np.testing.assert_array_equal(other, [total, 0, 0, 0, total, 0, 0, 0])


def test_lanes_that_add_to_two_arrays() -> None:
    program = text("and.b32 %r5, %r0, 1; setp.eq.u32 %p1, %r5, 1; @%p1 mov.u64 %rd4, %rd3; " + SUM)
    out, other = run(program, np.zeros(256, np.uint32))
    even = np.arange(COUNT) % 2 == 0
    np.testing.assert_array_equal(out, expected(chosen=even))
    np.testing.assert_array_equal(other, [expected(chosen=~even).sum(), *[0] * 7])


MASKS = {
    "all but some": "and.b32 %r5, %r0, 7; setp.ne.u32 %p1, %r5, 3;",
    "all but the first": "and.b32 %r5, %r0, 31; setp.ne.u32 %p1, %r5, 0;",
    "one": "and.b32 %r5, %r0, 31; setp.eq.u32 %p1, %r5, 17;",
    "none of a warp": "and.b32 %r5, %r0, 32; setp.eq.u32 %p1, %r5, 0;",
    "none": "setp.eq.u32 %p1, %r0, 4294967295;",
}
CHOSEN = {
    "all but some": lambda i: i % 8 != 3,
    "all but the first": lambda i: i % 32 != 0,
    "one": lambda i: i % 32 == 17,
    "none of a warp": lambda i: i & 32 == 0,
    "none": lambda i: i < 0,
}


@pytest.mark.parametrize("check", ["", "memory", "race", "all"])
@pytest.mark.parametrize("bins", [1, 256])
@pytest.mark.parametrize("mask", MASKS)
def test_lanes_that_are_off_add_nothing(mask: str, bins: int, check: str) -> None:
    """Not even where their addresses lie beyond the array; those that are on may all add to one word."""
    program = text(f"{MASKS[mask]} @!%p1 mov.u64 %rd4, 64; @%p1 {SUM}", bins=bins)
    found, _ = run(program, np.full(bins, 7, np.uint32), check=check)
    np.testing.assert_array_equal(found, 7 + expected(bins, CHOSEN[mask](np.arange(COUNT))))


@pytest.mark.parametrize("count", [2, 255, 256, 1 << 18])
def test_words_behind_the_array_are_no_part_of_it(count: int) -> None:
    """That is, those in which code leaves what lanes add that are off: what a thread adds there is found as anywhere else."""
    index = f"mov.u32 %r1, {count}; setp.eq.u32 %p1, %r0, 4711; @!%p1 sub.u32 %r1, %r1, 2;"
    program = text(f"{index} mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd4, %rd2; {SUM}")
    device = ptxemu.Device(workers=2, check="memory")
    arrays = [device.to_device(array) for array in (DATA, np.zeros(count, np.uint32), np.zeros(8, np.uint32))]
    ptxemu.loads(program, device=device)["k"][CTAS, THREADS](*arrays)
    assert device.checks is not None
    (found,) = device.checks.findings
    assert "just after an allocation" in found.message
    assert found.thread == (4711 % THREADS, 0, 0)


def test_words_of_64_bits_carry() -> None:
    program = text("red.global.add.u64 [%rd3], %rd6;")
    other = np.array([0xFFFFFFFF, 1], np.uint32)
    total = (1 << 32) + 0xFFFFFFFF + int(expected().sum())
    np.testing.assert_array_equal(run(program, np.zeros(256, np.uint32), other)[1], [total % 2**32, total >> 32])


def test_a_fault_names_the_lane() -> None:
    program = text("setp.eq.u32 %p1, %r0, 4711; @%p1 add.u64 %rd4, %rd4, 1; " + SUM)
    with pytest.raises(ptxemu.Fault, match=rf"misaligned.*thread \({4711 % THREADS},0,0\)"):
        run(program, np.zeros(256, np.uint32))


def test_launches_at_the_same_time_lose_nothing() -> None:
    device = ptxemu.Device(workers=2)
    data, out, other = (device.to_device(array) for array in (DATA, np.zeros(256, np.uint32), np.zeros(8, np.uint32)))
    launcher = ptxemu.loads(text(), device=device)["k"][CTAS, THREADS]
    plain = ptxemu.loads(text(load="ld.global.u32 %r1, [%rd1];"), device=device)["k"][CTAS, THREADS]
    launches, threads = 12, [(launcher, data, out, other), (launcher, data, out, other), (plain, data, out, other)]

    def repeat(launch: object, *arguments: object) -> None:
        for _ in range(launches):
            launch(*arguments)  # type: ignore[operator]

    running = [threading.Thread(target=repeat, args=given) for given in threads]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    np.testing.assert_array_equal(out.copy_to_host(), expected() * np.uint32(launches * len(threads)))


@pytest.mark.parametrize(("size", "times"), [(64, 1), (4096, 1), (4096, 3)])
@pytest.mark.parametrize("check", [None, "all"])
def test_sums_in_texels(size: int, times: int, check: str | None) -> None:
    """A small surface, of which workers have their own, and one for which it takes more threads."""
    program = text("""shr.u32 %r3, %r1, 3; and.b32 %r4, %r1, 7; shl.b32 %r4, %r4, 2;
    sured.b.add.2d.u32.zero [%rd2, {%r4, %r3}], %r2;""")
    device = ptxemu.Device(workers=2, check=check)
    surface = device.surface(np.zeros((32, size), np.uint32), format="R32_UINT", geometry="2d")
    ptxemu.loads(program, device=device)["k"][times * CTAS, THREADS](
        device.to_device(np.tile(DATA, times)), surface, device.to_device(DATA[:8])
    )
    found = surface.copy_to_host()
    np.testing.assert_array_equal(found[:, :8].ravel(), times * expected())
    assert not found[:, 8:].any()


OWN = """mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd4, %rd2; mul.wide.u32 %rd7, %r0, 4; add.u64 %rd3, %rd3, %rd7;"""
"""The addresses of the words with the numbers r4 in ``out`` and r0 in ``other``."""
INDEXES = {
    "in a row": "mov.u32 %r4, %r0;",
    "far apart": f"mul.lo.u32 %r4, %r0, 4099; and.b32 %r4, %r4, {COUNT - 1};",
}
BEFORE = np.arange(COUNT, dtype=np.uint32) * np.uint32(0x01000193)
WEIGHTS = np.arange(COUNT, dtype=np.uint32) % 8 + 1


@pytest.mark.parametrize("check", ["", "all"])
@pytest.mark.parametrize("load", ["ld.global", "ld"])
@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_a_thread_sees_what_it_has_added(index: str, load: str, check: str) -> None:
    program = text(f"{index} {OWN} {SUM} {SUM} {load}.u32 %r5, [%rd4]; st.global.u32 [%rd3], %r5;")
    out, other = run(program, BEFORE, np.zeros(COUNT, np.uint32), check=check)
    order = np.argsort(INDEX_OF[index])
    np.testing.assert_array_equal(other, BEFORE[INDEX_OF[index]] + 2 * WEIGHTS)
    np.testing.assert_array_equal(out, BEFORE + 2 * WEIGHTS[order])


INDEX_OF = {INDEXES["in a row"]: np.arange(COUNT), INDEXES["far apart"]: np.arange(COUNT) * 4099 % COUNT}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_a_store_follows_what_was_added_before(index: str) -> None:
    program = text(f"{index} {OWN} {SUM} st.global.u32 [%rd4], 1000; {SUM}")
    out, _ = run(program, BEFORE, np.zeros(COUNT, np.uint32))
    np.testing.assert_array_equal(out, 1000 + WEIGHTS[np.argsort(INDEX_OF[index])])


@pytest.mark.parametrize("seen", ["ld.global.u32 %r5, [%rd4];", f"{SUM} ld.global.u32 %r5, [%rd4];"])
@pytest.mark.parametrize("again", ["", SUM])
@pytest.mark.parametrize("count", [4 * COUNT, 8 * COUNT])
def test_what_waits_for_its_line_is_seen(seen: str, again: str, count: int) -> None:
    """In a large array, to which some lanes of a warp add, and then others, before all of its block read; and add again. Of the
    larger one workers have twins only after some sums."""
    program = text(f"""mul.lo.u32 %r4, %r0, 4099; and.b32 %r4, %r4, {count - 1}; {OWN}
      and.b32 %r3, %r0, 3; setp.eq.u32 %p1, %r3, 1; @%p1 {SUM} @!%p1 {SUM} {seen} st.global.u32 [%rd3], %r5; {again}""")
    before = np.arange(count, dtype=np.uint32)
    out, other = run(program, before, np.zeros(4 * COUNT, np.uint32), times=4)
    index, weights = np.arange(4 * COUNT) * 4099 % count, np.tile(WEIGHTS, 4)
    np.testing.assert_array_equal(other, before[index] + weights * np.uint32(1 + (SUM in seen)))
    after = before.copy()
    after[index] += weights * np.uint32(1 + (SUM in seen) + bool(again))
    np.testing.assert_array_equal(out, after)


def test_behind_a_barrier_a_block_sees_its_sums() -> None:
    """Those of another warp, and of both when they come to one word."""
    program = text(f"""xor.b32 %r4, %r0, 32; {OWN} {SUM} and.b32 %r5, %r0, 96; mul.wide.u32 %rd8, %r5, 4;
      mul.wide.u32 %rd9, %r0, 4; add.u64 %rd9, %rd9, %rd2;
      bar.sync 0; ld.global.u32 %r5, [%rd9]; st.global.u32 [%rd3], %r5;""")
    out, other = run(program, BEFORE, np.zeros(COUNT, np.uint32))
    np.testing.assert_array_equal(other, BEFORE + WEIGHTS)
    np.testing.assert_array_equal(out, other)


def test_sums_in_the_array_that_is_read() -> None:
    """Words with even numbers are read, the others added to."""
    words = 1 << 12
    data = DATA[:words].copy()
    program = text(f"""and.b32 %r4, %r0, {words // 2 - 1}; mul.wide.u32 %rd4, %r4, 8; add.u64 %rd4, %rd4, %rd2;
      ld.global.u32 %r5, [%rd4]; and.b32 %r5, %r5, {words // 2 - 1}; mul.wide.u32 %rd4, %r5, 8; add.u64 %rd4, %rd4, %rd2;
      red.global.add.u32 [%rd4+4], %r2;""")
    found, _ = run(program, data)
    read = data[::2][np.arange(COUNT) % (words // 2)] % (words // 2)
    data[1::2] += np.bincount(read, WEIGHTS, words // 2).astype(np.uint32)
    np.testing.assert_array_equal(found, data)


def test_an_index_that_wraps_leads_to_the_sums() -> None:
    """Lanes 16 to 31 of a block read the words that they have added to; other lanes of that load would be 16 GiB behind."""
    program = text("""mov.u32 %r4, %tid.x; sub.u32 %r4, %r4, 16; setp.lt.u32 %p1, %r4, 16;
      mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd4, %rd2;
      @%p1 red.global.add.u32 [%rd4], 1; @!%p1 bra DONE;
      ld.global.u32 %r5, [%rd4]; setp.eq.u32 %p2, %r5, 0; @%p2 red.global.add.u32 [%rd3], 1;
DONE:""")
    out, other = run(program, np.zeros(64, np.uint32))
    np.testing.assert_array_equal(out, np.repeat([CTAS, 0], [16, 48]))
    assert other[0] == 0


def test_words_of_64_bits_are_seen() -> None:
    program = text("""mul.wide.u32 %rd4, %r4, 8; mov.u32 %r4, %r0; mul.wide.u32 %rd4, %r4, 8; add.u64 %rd4, %rd4, %rd2;
      mov.u64 %rd6, 0x100000001; red.global.add.u64 [%rd4], %rd6; ld.global.v2.u32 {%r5, %r6}, [%rd4];
      add.u32 %r5, %r5, %r6; mul.wide.u32 %rd7, %r0, 4; add.u64 %rd3, %rd3, %rd7; st.global.u32 [%rd3], %r5;""")
    threads = COUNT // 2
    device = ptxemu.Device(workers=2)
    before = np.arange(2 * threads, dtype=np.uint32)
    data, out, other = (device.to_device(array) for array in (DATA, before, np.zeros(threads, np.uint32)))
    ptxemu.loads(program, device=device)["k"][CTAS // 2, THREADS](data, out, other)
    np.testing.assert_array_equal(out.copy_to_host(), before + 1)
    np.testing.assert_array_equal(other.copy_to_host(), (before + 1).reshape(-1, 2).sum(1))
