"""One launch in parts, each on a copy of the memory: together they leave what one launch does, or it is an error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.case import Case, read_case, run_case
from ptxemu.case.runner import CaseRun
from ptxemu.spread.merge import ConflictError, merged
from ptxemu.spread.part import PartRunner
from ptxemu.text.errors import InputError
from tests.support.spreading import merged_parts

BLOCKS, THREADS = 12, 32
KERNELS = {
    # each thread has an element; sums, least and greatest numbers, bits of all
    "good": """
  mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %x; add.u32 %r1, %i, 7; st.global.u32 [%d1], %r1;
  and.b32 %r1, %i, 7; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %y; atom.global.add.u32 %r3, [%d1], %i;
  add.u64 %d1, %y, 32; neg.s32 %r2, %i; red.global.min.s32 [%d1], %r2; red.global.max.u32 [%d1+4], %i;
  shl.b32 %r2, 1, %r1; red.global.or.b32 [%d1+8], %r2; red.global.xor.b32 [%d1+12], %i; red.global.and.b32 [%d1+16], %r2;
  cvt.u64.u32 %d2, %i; red.global.add.u64 [total], %d2;""",
    "same_place": "  st.global.u32 [%x+4], %b;",
    "same_value": "  mov.u32 %r1, 9; st.global.u32 [%x+4], %r1;",
    "neighbour": """
  mul.wide.u32 %d1, %i, 4; add.u64 %d1, %d1, %x; st.global.u32 [%d1], %i;
  add.u32 %r1, %i, 32; and.b32 %r1, %r1, 255; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %x; ld.global.u32 %r1, [%d1];
  st.global.u32 [%y], %r1;""",
    "ticket": "  atom.global.add.u32 %r1, [%y], 1; mul.wide.u32 %d1, %r1, 4; add.u64 %d1, %d1, %x; st.global.u32 [%d1], %i;",
    "floats": "  cvt.rn.f32.u32 %f1, %i; red.global.add.f32 [%y], %f1;",
    "sum_and_product": "  setp.eq.u32 %p, %b, 0; @%p red.global.add.u32 [%y], 1; @!%p red.global.max.u32 [%y], %b;",
    "spins": "L: ld.volatile.global.u32 %r1, [%y]; setp.eq.u32 %p, %r1, 0; @%p bra L; st.volatile.global.u32 [%y], %i;",
}
HEAD = """
  .reg .u32 %i, %b, %t, %r<4>; .reg .u64 %x, %y, %d<3>; .reg .pred %p; .reg .f32 %f<2>;
  ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
  mov.u32 %b, %ctaid.x; mov.u32 %t, %tid.x; mad.lo.u32 %i, %b, 32, %t;
"""
MODULE = ".version 7.8\n.target sm_70\n.address_size 64\n.global .u64 total;\n" + "".join(
    f".visible .entry {name}(.param .u64 x, .param .u64 y)\n{{{HEAD}{body}\n  ret;\n}}\n" for name, body in KERNELS.items()
)
CASE = """
program = "k.ptx"
entry = "{entry}"
grid = {blocks}
block = {threads}
[args]
x = {{ full = {{ dtype = "u32", shape = 512, value = 1 }} }}
y = {{ full = {{ dtype = "u32", shape = 16, value = 5 }} }}
"""


@pytest.fixture(scope="module")
def device() -> ptxemu.Device:
    return ptxemu.Device(workers=1)


def case_of(folder: Path, entry: str, more: str = "", grid: str = str(BLOCKS), text: str = MODULE) -> Case:
    (folder / "k.ptx").write_text(text)
    (folder / "case.toml").write_text(CASE.format(entry=entry, blocks=grid, threads=THREADS) + more)
    return read_case(folder)


def spread(case: Case, device: ptxemu.Device, ends: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The bytes after parts of the first launch, that end before these blocks."""
    return merged_parts(PartRunner(CaseRun(case, device)), 0, ends)


@pytest.mark.parametrize("ends", [(), (6,), (1, 2, 11), tuple(range(1, BLOCKS))])
def test_parts_leave_what_one_launch_leaves(ends: tuple[int, ...], tmp_path: Path) -> None:
    device = ptxemu.default_device()
    found = spread(case_of(tmp_path, "good"), device, ends)
    index = np.arange(BLOCKS * THREADS, dtype=np.uint32)
    x, y = np.ones(512, "u4"), np.full(16, 5, "u4")
    x[: index.size] = index + 7
    y[:8] += np.bincount(index % 8, index).astype("u4")
    y[8], y[9] = np.uint32(-int(index[-1]) % 2**32), index[-1]
    y[10], y[11] = 5 | 255, 5 ^ np.bitwise_xor.reduce(index)
    y[12] = 0  # of one bit each, all together
    assert found["x"].tobytes() == x.tobytes() and found["y"].tobytes() == y.tobytes()
    assert found[".global total"].view("u8").tolist() == [index.sum()]
    whole = run_case(read_case(tmp_path), device=device)
    assert all(found[name].tobytes() == whole.arrays[name].tobytes() for name in "xy")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("same_place", "block (1,0,0) writes byte 4 of x, which block (3,0,0) writes, too"),
        ("neighbour", "block (2,0,0) writes byte 256 of x, which block (1,0,0) reads, too"),
        ("ticket", "block (0,0,0) writes byte 20 of x, which block (2,0,0) writes, too"),
        ("floats", "block (1,0,0) writes byte 0 of y, which block (2,0,0) reads, too"),
        ("sum_and_product", "block (1,0,0) writes byte 0 of y, which block (3,0,0) writes, too"),
    ],
)
def test_conflicts_name_both_blocks(entry: str, message: str, device: ptxemu.Device, tmp_path: Path) -> None:
    with pytest.raises(ConflictError) as caught:
        spread(case_of(tmp_path, entry, grid="4"), device, (2,))
    assert message in str(caught.value)


def test_a_block_that_writes_what_was_there_is_in_conflict_too(device: ptxemu.Device, tmp_path: Path) -> None:
    """Block 1 writes 1 where there is 1: one launch could leave that as well."""
    runner = PartRunner(CaseRun(case_of(tmp_path, "same_place", grid="3"), device))
    memory = runner.memory()
    parts = [runner.run_part(0, memory, range(first, first + 1), 60).changes for first in (1, 2)]
    with pytest.raises(ConflictError, match=r"block \(1,0,0\) writes byte 4 of x, which block \(2,0,0\) writes"):
        merged(memory, parts, (3, 1, 1), runner.place)


def test_the_same_value_is_no_conflict(device: ptxemu.Device, tmp_path: Path) -> None:
    assert spread(case_of(tmp_path, "same_value"), device, (5,))["x"].view("u4")[:3].tolist() == [1, 9, 1]


@pytest.mark.parametrize(
    ("entry", "more", "message"),
    [
        ("spins", "", "blocks of kernel spins wait for each other"),
        ("good", "cooperative = true", "blocks of kernel good wait for each other"),
        ("good", "cluster = 1", "blocks of kernel good wait for each other"),
    ],
)
def test_blocks_that_wait_for_each_other_are_refused(
    entry: str, more: str, message: str, device: ptxemu.Device, tmp_path: Path
) -> None:
    case = case_of(tmp_path, entry)
    if more:
        (tmp_path / "case.toml").write_text(f"{more}\n{(tmp_path / 'case.toml').read_text()}")
        case = read_case(tmp_path)
    runner = PartRunner(CaseRun(case, device))
    with pytest.raises(InputError, match=message):
        runner.run_part(0, runner.memory(), range(1), 60)


def test_what_has_no_footprint_is_refused(device: ptxemu.Device, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs --engine jit"):
        PartRunner(CaseRun(case_of(tmp_path, "good"), ptxemu.Device(engine="interpreter")))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_a_part_sees_the_whole_grid(engine: str) -> None:
    launch = ptxemu.loads(GRID, device=ptxemu.Device(engine=engine))["k"][(4, 3), 1]
    found = np.zeros(12, np.uint32)
    done = launch.part(3, 9)(found)
    assert found.tolist() == [0] * 3 + [4] * 6 + [0] * 3 and done.ctas == 6
    for first, end in ((-1, 3), (3, 3), (0, 13)):
        with pytest.raises(InputError, match="no blocks"):
            launch.part(first, end)
    with pytest.raises(InputError, match="it has no parts"):
        launch.part(0, 3)(found, cooperative=True)


GRID = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p)
{
  .reg .u32 %r<4>; .reg .u64 %d<3>;
  ld.param.u64 %d1, [p];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.y;
  mad.lo.u32 %r1, %r3, %r2, %r1;
  mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
  st.global.u32 [%d1], %r2;
  ret;
}
"""
