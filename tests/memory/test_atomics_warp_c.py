"""red and atom of whole warps, inside launches: lane order, spaces, faults, concurrency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxemu._runtime import ffi, lib
from tests.memory.atomic_cases import LEGAL, SPACE, Memory, Windows, atom_site, check, le, operands, type_code
from tests.support import atomic_model
from tests.support.warp_calls import ALL_LANES, LANES


@pytest.fixture(scope="module")
def memory() -> Any:
    made = Memory()
    yield made
    lib.pe_arena_destroy(made.arena)


# ---- warps ---------------------------------------------------------------------------------------------------------

PATTERNS = ["one", "distinct", "few", "random"]


def lane_places(pattern: str, rng: np.random.Generator) -> Any:
    if pattern == "one":
        return np.full(LANES, 3)
    if pattern == "distinct":
        return rng.permutation(LANES)
    return rng.integers(0, 4 if pattern == "few" else LANES, LANES)


def sequential(op: str, type_: str, cells: list[int], places: Any, mask: int, a: list[int], b: list[int], ftz: bool) -> Any:
    """What the lanes of a warp do, one by one; None once a value is any NaN."""
    returned: list[int | None] = [None] * LANES
    values: list[int | None] = list(cells)
    for lane in range(LANES):
        if mask >> lane & 1:
            old = values[places[lane]]
            new = None if old is None else atomic_model.apply(op, type_, old, a[lane], b[lane], ftz)
            returned[lane] = new if op == "predec" else old
            values[places[lane]] = new
    return values, returned


@pytest.mark.sampled(3)
@pytest.mark.parametrize("space", SPACE)
@pytest.mark.parametrize(("op", "type_"), LEGAL)
def test_warp(op: str, type_: str, space: str, memory: Memory) -> None:
    """Lanes of every address pattern and mask, with and without a result, in every space."""
    rng = np.random.default_rng(LEGAL.index((op, type_)) * 3 + list(SPACE).index(space))
    size = lib.pe_atom_bytes(type_code(type_))
    cells_memory = memory.array(1024)
    for pattern in PATTERNS:
        for mask in (ALL_LANES, int(rng.integers(1, 1 << 32)), 1 << int(rng.integers(0, 32))):
            cells, a, b = operands(type_, rng, LANES), operands(type_, rng, LANES), operands(type_, rng, LANES)
            places = lane_places(pattern, rng)
            cells_memory[: LANES * size] = np.frombuffer(b"".join(le(v, size) for v in cells), np.uint8)
            base = 0 if space == "shared" else cells_memory.ctypes.data
            addresses = (base + places * size).astype(np.uint64)
            # Lanes that are off may hold anything.
            addresses[[lane for lane in range(LANES) if not mask >> lane & 1]] = 0xDEAD
            packed = [np.frombuffer(b"".join(le(v, size) for v in values), np.uint8) for values in (a, b)]
            old = np.full(LANES * size, 0xEE, np.uint8)
            wanted = rng.random() < 0.6
            outcome = memory.caller.call(
                "pe_atomic",
                atom_site(op, type_, space),
                mask,
                addresses,
                *packed,
                old if wanted else None,
                shared=cells_memory if space == "shared" else None,
            )
            assert outcome.fault is None
            ftz = op == "fadd" and type_ == "f32" and space != "shared"
            values, returned = sequential(op, type_, cells, places, mask, a, b, ftz)
            check(cells_memory, values, size)
            if wanted:
                check(old, [0xEE * int("01" * size, 16) if not mask >> i & 1 else v for i, v in enumerate(returned)], size)


@pytest.mark.parametrize(
    ("type_", "count"),
    [("f32", 2), ("f32", 4), ("f16", 2), ("f16", 4), ("f16", 8), ("bf16", 8), ("f16x2", 2), ("bf16x2", 4)],
)
def test_vector_forms(type_: str, count: int, memory: Memory) -> None:
    rng = np.random.default_rng(count)
    size = lib.pe_atom_bytes(type_code(type_))
    for op in ("fadd", "fmin", "fmax") if type_ != "f32" else ("fadd",):
        cells = memory.array(LANES * 16)
        values = operands(type_, rng, LANES * count)
        a = operands(type_, rng, LANES * count)
        cells[: len(values) * size] = np.frombuffer(b"".join(le(v, size) for v in values), np.uint8)
        addresses = (cells.ctypes.data + np.arange(LANES) * size * count).astype(np.uint64)
        old = np.zeros(LANES * count * size, np.uint8)
        operand = np.frombuffer(b"".join(le(v, size) for v in a), np.uint8)
        outcome = memory.caller.call("pe_atomic", atom_site(op, type_, "global", count), ALL_LANES, addresses, operand, None, old)
        assert outcome.fault is None
        check(cells, [atomic_model.apply(op, type_, v, x, 0, type_ == "f32") for v, x in zip(values, a)], size)  # type: ignore[arg-type]
        check(old, values, size)  # type: ignore[arg-type]


FAULTS = [
    # lane 5's address, relative to global memory or absolute, space, count; kind
    ("global", 2, "global", 1, "MISALIGNED"),
    ("global", 4, "global", 2, "MISALIGNED"),
    ("absolute", 64, "global", 1, "NULL"),
    ("absolute", 1 << 62, "generic", 1, "ILLEGAL_ADDRESS"),
    ("absolute", 1024, "shared", 1, "ILLEGAL_ADDRESS"),
    ("absolute", 2, "shared", 1, "MISALIGNED"),
    ("global", 1 << 20, "global", 1, "ILLEGAL_ADDRESS"),
]


@pytest.mark.parametrize(("base", "offset", "space", "count", "kind"), FAULTS)
def test_warp_fault(base: str, offset: int, space: str, count: int, kind: str, memory: Memory) -> None:
    """The lanes before the failing one are done, it and those after it write nothing."""
    cells = memory.array(1024)
    start = 0 if space == "shared" else cells.ctypes.data
    addresses = (start + np.arange(LANES) * 8).astype(np.uint64)
    addresses[5] = offset + (cells.ctypes.data if base == "global" else 0)
    ones = np.full(LANES * count, 1.0, np.float32)
    site = atom_site("fadd", "f32", space, count)
    outcome = memory.caller.call("pe_atomic", site, 0xFFFFFFFE, addresses, ones, None, None, shared=np.zeros(1024, np.uint8))
    assert outcome.fault is not None
    assert outcome.fault.kind == getattr(lib, f"PE_{kind}")
    if (base, offset) != ("global", 1 << 20):  # an unmapped page is found by the CPU, which does not know the lane
        assert (outcome.fault.lane, outcome.fault.address, outcome.fault.space) == (5, int(addresses[5]), SPACE[space])
        assert outcome.fault.size == 4 * count
    assert outcome.fault.pos == 55
    if space != "shared":
        done = cells.view(np.float32)[: LANES * 2].reshape(LANES, 2)[:, 0]
        assert list(done) == [0, 1, 1, 1, 1] + [0] * 27


@pytest.mark.parametrize("shared_lanes", [0x55555555, ALL_LANES, 0])
def test_generic_lanes_follow_the_space_they_hit(shared_lanes: int) -> None:
    """Sums of subnormals: shared memory keeps them, global memory flushes them."""
    windows = Windows()
    launch = np.zeros(1 << 14, np.uint8)  # not exclusive
    windows.warp.launch = ffi.cast("pe_launch *", launch.ctypes.data)
    in_shared = np.array([shared_lanes >> lane & 1 for lane in range(LANES)])
    bases = np.where(in_shared, windows.at["shared"], windows.at["global"]).astype(np.uint64)
    addresses = bases + 4 * np.arange(LANES, dtype=np.uint64)
    for address in addresses:
        windows.put(int(address), 1)
    least = np.ones(LANES, np.uint32)
    old = np.zeros(LANES, np.uint32)
    pointers = [ffi.cast("void *", array.ctypes.data) for array in (least, old)]
    site = atom_site("fadd", "f32", "generic")
    addresses_pointer = ffi.cast("uint64_t *", addresses.ctypes.data)
    lib.pe_atomic(windows.warp, site, ALL_LANES, addresses_pointer, pointers[0], ffi.NULL, pointers[1])
    assert [windows.word(int(address)) for address in addresses] == list(2 * in_shared)
    assert (old == 1).all()


def test_illegal_operation_is_a_fault(memory: Memory) -> None:
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    outcome = memory.caller.call("pe_atomic", atom_site("and", "f32"), 1, addresses, np.ones(LANES, np.uint32), None, None)
    assert outcome.fault is not None and outcome.fault.kind == lib.PE_ILLEGAL_OP_TYPE
    assert not cells.any()


# ---- concurrency ---------------------------------------------------------------------------------------------------

TOTALS = [
    ("add", "u32", 3, lambda n: 3 * n % 2**32),
    ("add", "u64", 2**33, lambda n: 2**33 * n % 2**64),
    ("sub", "u16", 1, lambda n: -n % 2**16),
    ("inc_wrap", "u32", 9, lambda n: n % 10),
    ("dec_wrap", "u32", 9, lambda n: -n % 10),
    ("predec", "u32", 0, lambda n: -n % 2**32),
    ("xor", "b32", 5, lambda n: 5 * (n % 2)),
]


@pytest.mark.parametrize("pattern", ["one", "few"])
@pytest.mark.parametrize(("op", "type_", "operand", "total"), TOTALS)
def test_concurrent_totals(op: str, type_: str, operand: int, total: Any, pattern: str, memory: Memory) -> None:
    """Two launches of two workers each."""
    size, ctas = lib.pe_atom_bytes(type_code(type_)), 3000
    cells = memory.array(256)
    places = np.arange(LANES) % (1 if pattern == "one" else 4)
    addresses = (cells.ctypes.data + places * size).astype(np.uint64)
    a = np.frombuffer(le(operand, size) * LANES, np.uint8)
    arguments = ("pe_atomic", atom_site(op, type_), ALL_LANES, addresses, a, None, None)
    started = [memory.caller.start(*arguments, ctas=ctas, workers=2) for _ in range(2)]
    for one in started:
        assert memory.caller.finish(one).fault is None
    updates = 2 * ctas * LANES // len(set(places))
    check(cells, [total(updates)] * len(set(places)), size)


@pytest.mark.parametrize(
    ("type_", "one", "ctas"),
    [("f32", 0x3F800000, 3000), ("f64", 0x3FF0000000000000, 3000), ("f16x2", 0x3C003C00, 30), ("bf16", 0x3F80, 3)],
)
def test_concurrent_float_sums(type_: str, one: int, ctas: int, memory: Memory) -> None:
    """Sums of ones stay exact as long as the format holds them."""
    size = lib.pe_atom_bytes(type_code(type_))
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    a = np.frombuffer(le(one, size) * LANES, np.uint8)
    started = [
        memory.caller.start("pe_atomic", atom_site("fadd", type_), ALL_LANES, addresses, a, None, None, ctas=ctas, workers=2)
        for _ in range(2)
    ]
    for launch in started:
        assert memory.caller.finish(launch).fault is None
    number = atomic_model.Fraction(2 * ctas * LANES)
    element = type_.removesuffix("x2")
    expected = atomic_model.rounded(element, number, False)
    check(cells, [expected | expected << 16 if element != type_ else expected], size)


def test_returned_values_are_distinct_tickets(memory: Memory) -> None:
    cells = memory.array(256)
    addresses = np.full(LANES, cells.ctypes.data, np.uint64)
    ones = np.ones(LANES, np.uint32)
    results = [np.zeros(LANES, np.uint32) for _ in range(64)]
    site = atom_site("add", "u32")
    started = [memory.caller.start("pe_atomic", site, ALL_LANES, addresses, ones, None, r, workers=1) for r in results]
    for launch in started:
        memory.caller.finish(launch)
    assert sorted(np.concatenate(results)) == list(range(64 * LANES))
    assert all((np.diff(r) == 1).all() for r in results)
