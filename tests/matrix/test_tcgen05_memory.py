"""Tensor memory: what every form of tcgen05.ld and tcgen05.st moves, allocation, and what is a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault, UnsupportedError
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.support import matrix_model as model

NUMBERS = [1, 2, 4, 8, 16, 32, 64, 128]
WARPS = 4


class Move(NamedTuple):
    """A load or store, by each of four warps, from a lane of the warp's and a column on."""

    opcode: str
    shape: str
    number: int
    packed: bool = False
    apart: int = 0
    lane: int = 0
    column: int = 0

    @property
    def registers(self) -> int:
        return tcgen05.SHAPES[self.shape] * self.number

    @property
    def text(self) -> str:
        option = {"ld": ".pack::16b", "st": ".unpack::16b"}[self.opcode] if self.packed else ""
        name = f"tcgen05.{self.opcode}.sync.aligned.{self.shape}.x{self.number}{option}.b32"
        place = f"[%at+{(self.lane << 16) + self.column}]" + (f", {self.apart}" if self.shape == "16x32bx2" else "")
        registers = kernels.registers(self.registers)
        return f"  {name} {registers}, {place};\n" if self.opcode == "ld" else f"  {name} {place}, {registers};\n"

    @property
    def width(self) -> int:
        """Columns of the window."""
        return tcgen05.COLUMNS_OF[self.shape] * self.number << self.packed


def moves(shape: str, numbers: Sequence[int] = NUMBERS) -> list[Move]:
    rng = np.random.default_rng(1)
    found = []
    for number, packed, opcode in product(numbers, (False, True), ("ld", "st")):
        move = Move(opcode, shape, number, packed)
        if move.registers > kernels.REGISTERS:
            continue
        column = int(rng.integers(0, tcgen05.COLUMNS - move.width + 1))
        apart = int(rng.integers(0, tcgen05.COLUMNS - move.width - column + 1)) if shape == "16x32bx2" else 0
        lane = 0 if shape == "32x32b" else 16 * int(rng.integers(0, 2))
        found.append(move._replace(column=column, apart=apart, lane=lane))
    return found


def text_of(program: Sequence[Move]) -> str:
    parts, first = [], 0
    for move in program:
        n = move.registers
        if move.opcode == "ld":
            parts.append(move.text + "  tcgen05.wait::ld.sync.aligned;\n" + kernels.to_host(n, first))
        else:
            parts.append(kernels.from_host(n, first) + move.text)
        first += n
    return kernels.kernel("".join(parts))


def texts() -> Iterator[str]:
    """Kernels with every load, store and copy, and allocation."""
    for how, formats in copies():
        yield kernels.kernel(copy_text(how, tcgen05.layouts(0, 1, 128, False), formats, 0))
    yield ALLOCATION.format(body=GENERIC + free(32))
    for shape in tcgen05.SHAPES:
        yield text_of(moves(shape))


def simulate(program: Sequence[Move], cells: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first, values = 0, values.copy()
    for move in program:
        places = tcgen05.places(move.shape, move.number, move.packed, move.apart)
        rows = slice(first, first + move.registers)
        before = cells
        for warp in range(WARPS):
            lane, threads = 32 * warp + move.lane, slice(32 * warp, 32 * warp + 32)
            if move.opcode == "ld":
                values[rows, threads] = tcgen05.loaded(before, places, lane, move.column)
            else:
                cells = tcgen05.stored(cells, places, lane, move.column, move.packed, values[rows, threads])
        first += move.registers
    return cells, values


def check(program: Sequence[Move], engine: str) -> None:
    rng, rows = np.random.default_rng(2), sum(move.registers for move in program)
    cells = rng.integers(0, 1 << 32, (tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    values = rng.integers(0, 1 << 32, (rows, 128), np.uint32)
    wanted = simulate(program, cells, values)
    found = kernels.run(text_of(program), cells, values, device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("shape", tcgen05.SHAPES)
def test_loads_and_stores(shape: str) -> None:
    check(moves(shape), "jit")


@pytest.mark.parametrize("shape", tcgen05.SHAPES)
def test_interpreted(shape: str) -> None:
    check(moves(shape, [1, 4]), "interpreter")


# ---------------------------------------------------------------- copies from shared memory

FORMATS = {"": "u8", ".b8x16.b6x16_p32": "e2m3", ".b8x16.b4x16_p64": "e2m1"}


def copy_text(how: str, layout: tcgen05.Layout, formats: str, column: int) -> str:
    name = f"tcgen05.cp.cta_group::1.{how}{formats}"
    return f"  add.u64 %da, %base, {layout.bits}; add.u32 %r0, %b, {column};\n  @%one {name} [%r0], %da;\n{kernels.ARRIVED}"


def copies() -> Iterator[tuple[str, str]]:
    yield from product(tcgen05.COPIES, FORMATS)


def check_copy(how: str, formats: str, mode: int, engine: str) -> None:
    rng, type = np.random.default_rng(4), FORMATS[formats]
    rows, line_bytes = int(how.split("x")[0]), 32 if "256b" in how else 16
    layout = tcgen05.layouts(mode, 1, rows, False)
    low, high = model.NARROW[type][1:] if formats else (0, 8)
    matrix = rng.integers(0, 1 << high, (rows, line_bytes)) << low
    memory, cells = tcgen05.image(matrix, type, layout, kernels.SHARED), rng.integers(0, 1 << 32, (128, 512), np.uint32)
    column = int(rng.integers(0, 500))
    text = kernels.kernel(copy_text(how, layout, formats, column))
    found, _ = kernels.run(text, cells, memory=memory, device=ptxemu.Device(engine=engine))
    lines = np.ascontiguousarray(matrix.astype(np.uint8)).view(np.uint32)
    np.testing.assert_array_equal(found, tcgen05.copied(cells, lines, how, column))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize(("how", "formats"), list(copies()))
def test_copies(how: str, formats: str, mode: int) -> None:
    """Of matrices in every layout; elements of 6 and 4 bits become those that mma takes."""
    check_copy(how, formats, mode, "jit")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("how", "formats"), list(copies()))
def test_copies_interpreted(how: str, formats: str) -> None:
    check_copy(how, formats, 1, "interpreter")


@pytest.mark.parametrize("lane", [0, 1, 28, 31])
def test_copies_of_four_rows_start_at_any_lane_of_a_warp(lane: int) -> None:
    rng = np.random.default_rng(5)
    matrix, cells = rng.integers(0, 256, (4, 32), np.uint8), rng.integers(0, 1 << 32, (128, 512), np.uint32)
    layout = tcgen05.layouts(0, 1, 4, False)
    memory, wanted = tcgen05.image(matrix, "u8", layout, kernels.SHARED), cells.copy()
    wanted[lane::32, 8:16] = matrix.view(np.uint32)
    text = kernels.kernel(copy_text("4x256b", layout, "", (lane << 16) + 8))
    found, _ = kernels.run(text, cells, memory=memory)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("column", "bits", "message"),
    [(509, 0, "not allocated"), (1 << 16, 0, "starts at lane 0"), (0, 1 << 61, "layout of a matrix"),
     (0, 0x3FFF, "illegal address")],
)  # fmt: skip
def test_copies_that_lead_nowhere(column: int, bits: int, message: str, engine: str) -> None:
    text = copy_text("128x128b", tcgen05.Layout(0, False, 128, 8), "", column).replace("%base, ", f"%base, {bits} | ")
    cells = np.zeros((128, 512), np.uint32)
    with pytest.raises(Fault, match=message):
        kernels.run(kernels.kernel(text), cells, device=ptxemu.Device(engine=engine))


# ---------------------------------------------------------------- allocation

ALLOCATION = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{
  .reg .pred %p; .reg .b32 %t, %a, %x<3>; .reg .b64 %out; .shared .b32 start;
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; setp.eq.u32 %p, %t, 0; mov.b32 %a, 0; mov.b32 %x0, 0;
{body}  ret;
}}
"""
ALLOC = """\
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [start], {columns};
  ld.shared.b32 %a, [start];
"""
GIVE_UP = "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n"
GENERIC = """\
  cvta.shared.u64 %out, start;
  tcgen05.alloc.cta_group::1.sync.aligned.b32 [%out], 32;
  ld.shared.b32 %a, [start];
"""
WRITTEN = "  @%p st.global.b32 [%out], %a;\n  add.u64 %out, %out, 4;\n"
LOAD = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%x0}, [%a];\n"


def alloc(columns: int) -> str:
    return ALLOC.format(columns=columns)


def free(columns: int, at: str = "%a") -> str:
    return f"  tcgen05.dealloc.cta_group::1.sync.aligned.b32 {at}, {columns};\n"


def launch(body: str, engine: str = "jit", threads: int = 32, blocks: int = 1) -> np.ndarray:
    out = np.zeros(16, np.uint32)
    module = ptxemu.loads(ALLOCATION.format(body=body), filename="k.ptx", device=ptxemu.Device(engine=engine))
    module["k"][blocks, threads](out)
    return out


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_the_first_free_columns_are_allocated(engine: str) -> None:
    sizes = [32, 64, 128, 256, 32]
    body = "".join(alloc(size) + WRITTEN for size in sizes) + free(64, "32") + alloc(32) + WRITTEN + alloc(32) + WRITTEN
    assert list(launch(body, engine)[:7]) == [0, 32, 96, 224, 480, 32, 64]


def test_where_they_are_goes_to_an_address_of_shared_memory() -> None:
    launch(GENERIC + free(32))
    with pytest.raises(Fault, match="invalid address space"):
        launch(GENERIC.replace("cvta.shared.u64 %out, start;", "") + free(32))


def test_every_cta_has_all_columns() -> None:
    launch(alloc(512) + free(512), blocks=9)


def test_a_cta_begins_with_nothing_allocated() -> None:
    """However the one before it ended."""
    launch(alloc(512) + GIVE_UP, blocks=9)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (alloc(48), "powers of two"), (alloc(16), "powers of two"), (alloc(1024), "powers of two"), (alloc(0), "powers of two"),
        (alloc(512) + alloc(32), "not free"), (GIVE_UP + alloc(32), "given up"), (free(32, "0"), "not allocated there"),
        (alloc(64) + free(32), "not allocated there"), (alloc(64) + free(64) + free(64), "not allocated there"),
        (alloc(64) + free(32, "32"), "not allocated there"), (alloc(64) + free(64, "7"), "not allocated there"),
        (alloc(64) + free(64, "65536"), "not allocated there"),
    ],
)  # fmt: skip
def test_misuse_of_allocations(body: str, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        launch(body, engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("place", "message"),
    [("64", "not allocated"), ("512", "not allocated"), ("65535", "not allocated"), ("2097152", "a warp has"),
     ("65536", "a warp has"), ("4294901760", "a warp has")],
)  # fmt: skip
def test_columns_that_are_not_the_warps(place: str, message: str, engine: str) -> None:
    body = alloc(64) + f"  mov.b32 %a, {place};\n" + LOAD
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        launch(body, engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
def test_no_memory_before_an_allocation(engine: str) -> None:
    with pytest.raises(Fault, match="not allocated"):
        launch(LOAD, engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("body", [alloc(32), GIVE_UP, LOAD])
def test_a_whole_warp_takes_part(body: str, engine: str) -> None:
    with pytest.raises(Fault, match="partial warp"):
        launch("  setp.gt.u32 %p, %t, 7;\n  @%p exit;\n" + body, engine)


def test_any_address_is_in_tensor_memory_or_a_fault() -> None:
    """Programs may make them of anything; the second half of a store is behind another number of columns."""
    rng, outcomes = np.random.default_rng(3), set()
    for _ in range(60):
        place = int(rng.integers(0, 1 << 32)) & ~(int(rng.integers(0, 2)) * 0xFFE0_FE00)
        store = f"  tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%a], {rng.integers(0, 512)}, {{%x0}};\n"
        try:
            launch(alloc(512) + f"  mov.b32 %a, {place};\n" + str(rng.choice([LOAD, store])))
            outcomes.add("moved")
        except Fault as fault:
            outcomes.add(fault.details.kind)
    assert outcomes == {"moved", "tensor memory misuse"}


@pytest.mark.parametrize("address", ["start", "start+4", "0", "%out", "%single"])
def test_addresses_are_in_registers_of_32_bits(address: str) -> None:
    """ptxas refuses others, too."""
    text = ALLOCATION.format(body=alloc(32) + LOAD.replace("%a", address)).replace(
        ".reg .pred %p;", ".reg .pred %p; .reg .f32 %single;"
    )
    with pytest.raises((ptxemu.PtxError, UnsupportedError), match=r"k\.ptx:10"):
        ptxemu.loads(text, filename="k.ptx")["k"][1, 32](np.zeros(16, np.uint32))
