"""Surface instructions of whole warps, inside launches, against a second model (surface_model)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptxemu._runtime import ffi, lib
from tests.support.surface_model import MISALIGNED, NONE, TRAP
from tests.support.warp_calls import ALL_LANES, LANES, WarpCaller, int32
from tests.surfaces.surface_texels import CLAMP, GEOMETRY, Texels, context, random_model


@pytest.fixture
def table() -> Any:
    pointer = lib.pe_surface_table_new()
    yield pointer
    lib.pe_surface_table_free(pointer)


@pytest.fixture(scope="module")
def caller() -> Any:
    arena = lib.pe_arena_create(1 << 24)
    yield WarpCaller(arena)
    lib.pe_arena_destroy(arena)


# ---- warps ---------------------------------------------------------------------------------------------------------


def surface_site(kind: int, geometry: str, clamp: str, element: int, count: int, op: int = 0, type_: int = 0) -> Any:
    return ffi.new("pe_surface_site *", [77, kind, GEOMETRY[geometry], CLAMP[clamp], element, count, op, type_, 0])


KINDS = {
    "suld": lib.PE_SULD_B,
    "sust": lib.PE_SUST_B,
    "sust_p": lib.PE_SUST_P,
    "sured": lib.PE_SURED_B,
    "sured_p": lib.PE_SURED_P,
}
MODES = {"suld": "byte", "sust": "byte", "sust_p": "texel", "sured": "byte", "sured_p": "scaled"}


class WarpCase:
    """One surface instruction of a warp, random, with the model's idea of its effect."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.model, self.real = random_model(rng)
        self.kind = str(rng.choice(list(KINDS)))
        self.clamp = str(rng.choice(list(CLAMP)))
        self.element, self.count = int(rng.choice([1, 2, 4, 8])), int(rng.choice([1, 2, 4]))
        if self.kind == "sust_p":
            self.element = 4
        elif self.kind in ("sured", "sured_p"):
            self.element, self.count = int(rng.choice([4, 8])), 1
        elif self.element * self.count > 16:
            self.count = 2
        self.size = self.element * self.count
        self.mask = ALL_LANES if rng.random() < 0.5 else int(rng.integers(1, 1 << 32))
        self.real.memory[:] = rng.integers(0, 256, self.real.total)
        self.data = rng.integers(0, 256, (LANES, self.size)).astype(np.uint8)
        self.coordinates = self._coordinates(float(rng.choice([0.0, 0.05, 0.4])))

    def _coordinates(self, wild: float) -> dict[str, Any]:
        rng, model = self.rng, self.model
        step = {"texel": 1, "scaled": 1, "byte": self.size}[MODES[self.kind]]
        units = model.width if self.kind == "sust_p" else max(1, model.width * model.elem // self.size)
        xs = rng.integers(0, units, LANES)
        if rng.random() < 0.4:
            xs = rng.integers(0, units) + np.arange(LANES)
        found = {"x": xs * step}
        rows = rng.random() < 0.7
        if rows and rng.random() < 0.5:  # one row for each half of the lanes
            found["x"] = found["x"][np.arange(LANES) % 16]
        for name, extent in (("y", model.height), ("z", model.depth), ("layer", model.layers)):
            found[name] = np.repeat(rng.integers(0, extent, 2), 16) if rows else rng.integers(0, extent, LANES)
        for name, values in found.items():
            bad = rng.random(LANES) < wild
            values[bad] = rng.choice([-1, -4, 3, 1 << 20, 2**31 - 1, -(2**31)], LANES)[bad] if name != "layer" else 9999
        return found

    def where(self, lane: int) -> list[int]:
        x, y, z, layer = (int(self.coordinates[name][lane]) for name in ("x", "y", "z", "layer"))
        return [x, y, z, layer % 2**32]

    def expect(self) -> tuple[Any, Any, tuple[int, str] | None]:
        """Memory, data and the first fault after the instruction, lane by lane."""
        memory, data = self.real.memory.copy(), self.data.copy()
        for lane in range(LANES):
            if not self.mask >> lane & 1:
                continue
            at = self.model.resolve(MODES[self.kind], self.size, *self.where(lane), self.clamp)
            if at in (TRAP, MISALIGNED):
                return memory, data, (lane, str(at))
            if self.kind == "suld":
                data[lane] = 0 if at == NONE else memory[at : at + self.size]
            elif at != NONE:
                self._update(memory, int(at), data[lane])
        return memory, data, None

    def _update(self, memory: Any, at: int, lane: Any) -> None:
        if self.kind == "sust":
            memory[at : at + self.size] = lane
        elif self.kind == "sust_p":
            memory[at : at + self.model.elem] = list(self._formatted(lane.view(np.uint32)))
        else:
            old = int.from_bytes(bytes(memory[at : at + self.size]), "little")
            new = (old + int.from_bytes(bytes(lane), "little")) % (1 << 8 * self.size)
            memory[at : at + self.size] = list(new.to_bytes(self.size, "little"))

    def _formatted(self, values: Any) -> bytes:
        components = max(1, self.model.elem // 4)
        bits = 8 * self.model.elem // components
        given = [min(int(v), (1 << bits) - 1) for v in values[:components]] + [0] * components
        return b"".join(v.to_bytes(bits // 8, "little") for v in given[:components])

    def run(self, caller: WarpCaller, table: Any) -> tuple[Any, Any]:
        assert lib.pe_surface_table_set(table, 3, 5, self.real.desc) == 0
        type_ = lib.PE_TYPE_U32 if self.element == 4 else lib.PE_TYPE_U64
        geometry = self.model.geometry
        site = surface_site(KINDS[self.kind], geometry, self.clamp, self.element, self.count, lib.PE_ATOM_ADD, type_)
        handles = np.full(LANES, 3 | 5 << 32, np.uint64)
        lanes = {name: int32(values) for name, values in self.coordinates.items()}
        data = self.data.copy()
        outcome = caller.call(
            "pe_surface",
            site,
            self.mask,
            handles,
            lanes["x"],
            lanes["y"],
            lanes["z"],
            lanes["layer"],
            data,
            surfaces=context(table),
            workers=int(self.rng.integers(1, 3)),
        )
        return data, outcome.fault


@pytest.mark.parametrize("seed", range(300))
def test_warp_access_follows_the_model(seed: int, caller: WarpCaller, table: Any) -> None:
    case = WarpCase(seed)
    memory, data, stop = case.expect()
    got, fault = case.run(caller, table)
    assert (case.real.memory == memory).all()
    assert case.real.guards_intact
    if stop is None:
        assert fault is None
        assert (got == data).all()
        return
    lane, what = stop
    assert fault is not None
    assert (fault.kind, fault.lane) == (lib.PE_SURFACE_TRAP if what == TRAP else lib.PE_MISALIGNED, lane)
    assert (fault.slot, fault.pos) == (3, 77)
    assert fault.coordinates == case.where(lane)
    assert fault.size == (case.model.elem if case.kind == "sust_p" else case.size)


def test_warp_with_several_surfaces(caller: WarpCaller, table: Any) -> None:
    """Lanes may hold different handles; NULL stands for coordinates that the geometry lacks."""
    surfaces = [Texels("R32_UINT", 64, geometry="1d") for _ in range(3)]
    for index, surface in enumerate(surfaces):
        surface.memory.view(np.uint32)[:] = np.arange(64) + 1000 * index
        lib.pe_surface_table_set(table, 8 * index + 1, 9, surface.desc)
    slots = np.arange(LANES) * 7 % 3
    handles = (8 * slots + 1 + (9 << 32)).astype(np.uint64)
    data = np.zeros(LANES, np.uint32)
    site = surface_site(lib.PE_SULD_B, "1d", "trap", 4, 1)
    x = int32(np.arange(LANES) * 4)
    outcome = caller.call("pe_surface", site, ALL_LANES, handles, x, None, None, None, data, surfaces=context(table))
    assert outcome.fault is None
    assert (data == np.arange(LANES) + 1000 * slots).all()


@pytest.mark.parametrize(
    ("handle", "kind"),
    [
        (0, "INVALID_SURFACE"),
        (2, "INVALID_SURFACE"),
        (1 | 6 << 32, "INVALID_SURFACE"),
        (4, "UNBOUND_SURFACE"),
        (5, "GEOMETRY_MISMATCH"),
    ],
)
def test_warp_bad_handle(handle: int, kind: str, caller: WarpCaller, table: Any) -> None:
    plane, row = Texels("R32_UINT", 64, 4), Texels("R32_UINT", 64, geometry="1d")
    lib.pe_surface_table_set(table, 1, 5, plane.desc)
    lib.pe_surface_table_set(table, 4, 5, ffi.new("pe_surface_desc *", {"state": lib.PE_SURFACE_UNBOUND}))
    lib.pe_surface_table_set(table, 5, 5, row.desc)
    handles = np.full(LANES, 1 | 5 << 32, np.uint64)
    handles[9:] = handle
    data = np.full(LANES, 3, np.uint32)
    site = surface_site(lib.PE_SUST_B, "2d", "zero", 4, 1)
    x, y = int32(np.arange(LANES) * 4), int32(np.zeros(LANES))
    outcome = caller.call("pe_surface", site, 0xFFFFFFF0, handles, x, y, None, None, data, surfaces=context(table))
    assert outcome.fault is not None
    assert (outcome.fault.kind, outcome.fault.lane) == (getattr(lib, f"PE_{kind}"), 9)
    assert list(np.flatnonzero(plane.memory.view(np.uint32))) == [4, 5, 6, 7, 8]  # the lanes before it


def test_launch_without_surfaces(caller: WarpCaller) -> None:
    site = surface_site(lib.PE_SULD_B, "1d", "trap", 4, 1)
    zero = np.zeros(LANES, np.uint64)
    outcome = caller.call("pe_surface", site, 1, zero, int32(zero), None, None, None, np.zeros(LANES, np.uint32))
    assert outcome.fault is not None and outcome.fault.kind == lib.PE_INVALID_SURFACE


def test_suq_and_is_surface(caller: WarpCaller, table: Any) -> None:
    lib.pe_surface_table_set(table, 1, 5, Texels("R32_UINT", 64, 4).desc)
    lib.pe_surface_table_set(table, 2, 5, ffi.new("pe_surface_desc *", {"state": lib.PE_SURFACE_UNBOUND}))
    handles = np.full(LANES, 1 | 5 << 32, np.uint64)
    result = np.full(LANES, 7, np.uint32)
    ctx = context(table)
    assert caller.call("pe_suq", 77, lib.PE_SUQ_WIDTH, 0xFF, handles, result, surfaces=ctx).fault is None
    assert list(result) == [64] * 8 + [7] * 24
    handles[1::4], handles[2::4], handles[3::4] = 2 | 5 << 32, 1 | 6 << 32, 0
    assert caller.call("pe_is_surface", 0x0FFFFFFF, handles, surfaces=ctx).result == 0x01111111
    fault = caller.call("pe_suq", 77, lib.PE_SUQ_WIDTH, ALL_LANES, handles, result, surfaces=ctx).fault
    assert fault is not None and (fault.kind, fault.lane, fault.slot) == (lib.PE_INVALID_SURFACE, 2, 1)


@pytest.mark.parametrize("policy", ["mask", "edge", "layer16", "drop"])
def test_warp_policies(policy: str, caller: WarpCaller, table: Any) -> None:
    surface = Texels("R8_UINT", 10, 1, 1, 3, geometry="a1d", pitch=16)
    surface.memory[:] = np.arange(surface.total)
    lib.pe_surface_table_set(table, 1, 5, surface.desc)
    ctx = context(
        table,
        **{
            "mask": {"align": 1},
            "edge": {"partial_edge": 1},
            "layer16": {"layer_16bit": 1},
            "drop": {"invalid_header": 1},
        }[policy],
    )
    handles = np.full(LANES, 2 if policy == "drop" else 1, np.uint64)
    x = {"mask": 6, "edge": 8, "layer16": 4, "drop": 0}[policy]
    layer = 65537 if policy == "layer16" else 1
    data = np.full(LANES, 0xEEEEEEEE, np.uint32)
    site = surface_site(lib.PE_SULD_B, "a1d", "trap", 4, 1)
    outcome = caller.call(
        "pe_surface",
        site,
        1,
        handles,
        int32(np.full(LANES, x)),
        None,
        None,
        int32(np.full(LANES, layer)),
        data,
        surfaces=ctx,
    )
    assert outcome.fault is None
    start = {"mask": 4, "edge": 8, "layer16": 4}.get(policy)
    word = 0 if start is None else int.from_bytes(bytes(range(16 + start, 20 + start)), "little")
    assert list(data[:2]) == [word, 0xEEEEEEEE]
    assert ctx.dropped == (policy == "drop")


def test_concurrent_reductions(caller: WarpCaller, table: Any) -> None:
    """Two million updates of few texels, from two launches at once."""
    surface = Texels("R32_UINT", 4, geometry="1d")
    lib.pe_surface_table_set(table, 1, 5, surface.desc)
    site = surface_site(lib.PE_SURED_B, "1d", "trap", 4, 1, lib.PE_ATOM_ADD, lib.PE_TYPE_U32)
    handles, x = np.full(LANES, 1, np.uint64), int32(np.arange(LANES) % 4 * 4)
    data, ctas = np.full(LANES, 3, np.uint32), 32768
    arguments = ("pe_surface", site, ALL_LANES, handles, x, None, None, None, data)
    started = [caller.start(*arguments, surfaces=context(table), ctas=ctas, workers=2) for _ in range(2)]
    for one in started:
        assert caller.finish(one).fault is None
    assert list(surface.memory.view(np.uint32)) == [3 * 8 * ctas * 2 % 2**32] * 4
