"""Observers are told what PTX does: each access to memory, allocations, barriers, launches; without one nothing is different."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import ptxemu
from ptxemu._runtime import ffi, lib
from ptxemu.case import read_case, run_case
from ptxemu.driver import compile
from ptxemu.ir.observed import Observed
from ptxemu.lower.core import access
from ptxemu.lower.core.access import Access
from tests.support.kernel_tools import kernel
from tests.support.places import SAMPLES

KINDS = {lib.PE_READ: "read", lib.PE_WRITE: "write", lib.PE_UPDATE: "update"}
SPACES = {
    lib.PE_GENERIC: "generic",
    lib.PE_GLOBAL: "global",
    lib.PE_SHARED: "shared",
    lib.PE_LOCAL: "local",
    lib.PE_PARAM: "param",
    lib.PE_TEXEL: "texel",
}


@dataclass
class Watcher:
    """Counts what it is told."""

    accesses: Counter[tuple[str, str, int]] = field(default_factory=Counter)  # lanes, by kind, space and size
    addresses: dict[str, list[int]] = field(default_factory=dict)  # of global memory, by kind
    events: list[str] = field(default_factory=list)
    barriers: Counter[int] = field(default_factory=Counter)  # lanes, by number
    live: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ended = "void(void *, const pe_config *, const pe_record *)"
        self.callbacks = {
            "memory": ffi.callback("uint32_t(void *, const pe_warp *, const pe_memory_event *)", self.memory),
            "allocated": ffi.callback("void(void *, uint64_t, uint64_t, const pe_warp *, uint32_t)", self.allocated),
            "freed": ffi.callback("void(void *, uint64_t)", self.freed),
            "barrier": ffi.callback("void(void *, const pe_warp *, uint32_t, uint32_t, uint32_t, uint32_t)", self.barrier),
            "begun": ffi.callback("void(void *, const pe_config *)", lambda context, config: self.events.append("begun")),
            "ended": ffi.callback(ended, lambda context, config, record: self.events.append(f"ended {record.kind}")),
        }
        self.observer = ffi.new("pe_observer *", self.callbacks)

    def memory(self, context: Any, warp: Any, event: Any) -> int:
        lanes = [lane for lane in range(32) if event.mask >> lane & 1]
        kind, space = KINDS[event.kind], SPACES[event.space]
        self.accesses[kind, space, event.size] += len(lanes)
        if space in ("global", "texel"):
            self.addresses.setdefault(kind, []).extend(event.address[lane] for lane in lanes)
        return int(event.mask)

    def barrier(self, context: Any, warp: Any, pos: int, number: int, mask: int, how: int) -> None:
        self.barriers[number] += mask.bit_count()

    def allocated(self, context: Any, address: int, size: int, warp: Any, lane: int) -> None:
        assert address not in self.live
        self.live[address] = size

    def freed(self, context: Any, address: int) -> None:
        self.live.pop(address, None)  # what was allocated before anybody watched is not known


@pytest.fixture(params=["jit", "interpreter"])
def device(request: pytest.FixtureRequest) -> Iterator[ptxemu.Device]:
    with ptxemu.Device(memory="64 MiB", workers=1, engine=request.param) as made:
        yield made


@pytest.fixture
def watcher(device: ptxemu.Device) -> Iterator[Watcher]:
    made = Watcher()
    lib.pe_arena_observe(device.arena.handle, made.observer)
    yield made
    lib.pe_arena_observe(device.arena.handle, ffi.NULL)


def run(device: ptxemu.Device, text: str, *args: object, block: int = 64, observed: Observed = "all") -> None:
    module = ptxemu.loads(text, device=device)
    module.program.settings = replace(module.program.settings, observed=observed)
    module["k"][1, block](*args)


ADDRESS = "ld.param.u64 %rd1, [a]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 16; add.u64 %rd1, %rd1, %rd2;"
SCATTERED = "xor.b32 %r2, %r1, 5; mul.wide.u32 %rd4, %r2, 16; sub.u64 %rd3, %rd1, %rd2; add.u64 %rd3, %rd3, %rd4;"
DECLARED = ".shared .align 16 .b8 s[2048];\n.shared .align 8 .b64 bar;\n"
# instruction, threads of 64 that execute it, and what each of them does
ACCESSES = {
    "ld.global.u32 %r3, [%rd1];": [("read", "global", 4)],
    "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd1];": [("read", "global", 16)],
    "ld.u16 %h1, [%rd1];": [("read", "generic", 2)],
    f"{SCATTERED} ld.global.u64 %rd5, [%rd3];": [("read", "global", 8)],
    f"{SCATTERED} st.global.v2.u32 [%rd3], {{%r1, %r1}};": [("write", "global", 8)],
    "st.global.u8 [%rd1+3], %r1;": [("write", "global", 1)],
    "cvt.u32.u64 %r7, %rd2; st.shared.u32 [%r7], %r1;": [("write", "shared", 4)],
    "atom.global.add.u32 %r3, [%rd1], 1;": [("update", "global", 4)],
    "red.global.add.f64 [%rd1], 0d0000000000000000;": [("update", "global", 8)],
    "cvt.u32.u64 %r7, %rd2; cp.async.ca.shared.global [%r7], [%rd1], 8;": [("write", "shared", 8), ("read", "global", 8)],
    "cvt.u32.u64 %r7, %rd2; cp.async.cg.shared.global [%r7], [%rd1], 16, 4;": [("write", "shared", 16), ("read", "global", 4)],
    "cvt.u32.u64 %r7, %rd2; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r7], 16;": [
        ("write", "global", 16), ("read", "shared", 16)],
    "cvt.u32.u64 %r7, %rd2; mbarrier.init.shared.b64 [%r7], 1;": [("write", "shared", 8)],
    "cvt.u32.u64 %r7, %rd2; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, [%r7];": [("read", "shared", 16)],
}  # fmt: skip


@pytest.mark.parametrize("instruction", ACCESSES)
def test_each_lane_of_an_access_is_told_once(device: ptxemu.Device, watcher: Watcher, instruction: str) -> None:
    text = kernel(f"{ADDRESS} {instruction} ret;", ".param .u64 a", DECLARED).replace("sm_80", "sm_90")
    data = device.to_device(np.zeros(256, np.uint32))
    run(device, text, data)
    told = {what: count for what, count in watcher.accesses.items() if what[1] != "param"}
    assert told == {what: 64 for what in ACCESSES[instruction]}
    for addresses in watcher.addresses.values():
        assert {(address - data.address) // 16 for address in addresses} == set(range(64))


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[Access]:
    """The accesses that lowerings have made."""
    made: list[Access] = []

    def record(*arguments: Any) -> Access:
        made.append(Access(*arguments))
        return made[-1]

    monkeypatch.setattr(access, "Access", record)
    return made


def lanes_of(found: Access) -> int:
    """How many lanes of a full warp take part."""
    return 32 if found.mask.startswith("%") else found.mask.count("true")


MATRICES = {
    "cvt.u32.u64 %r7, %rd2; ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [%r7];": [("read", "shared", 16, 16)],
    "cvt.u32.u64 %r7, %rd2; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r7], {%r3};": [("write", "shared", 16, 8)],
}


@pytest.mark.parametrize("instruction", [*ACCESSES, *MATRICES])
def test_a_lowering_knows_what_its_access_does(
    device: ptxemu.Device, watcher: Watcher, lowered: list[Access], instruction: str
) -> None:
    text = kernel(f"{ADDRESS} {instruction} ret;", ".param .u64 a", DECLARED).replace("sm_80", "sm_90")
    run(device, text, device.to_device(np.zeros(256, np.uint32)))
    lowered.clear()
    module = compile.front(text)
    compile.lower(module, module.functions["k"], "row", compile.Options(observed="all"))
    told = MATRICES.get(instruction) or [(*what, 32) for what in ACCESSES[instruction]]
    for found, (kind, space, size, lanes) in zip((one for one in lowered if one.space != "param"), told, strict=True):
        assert (KINDS[found.kind], found.space, lanes_of(found)) == (kind, space, lanes)
        assert found.bytes in (size, None), "what it knows is right"
        assert found.bytes == size or instruction.partition("cp.async")[1], "and only the size of a copy is not known"
    count = sum(watcher.accesses[kind, space, size] for kind, space, size, _ in told)
    assert count == sum(2 * lanes for *_, lanes in told)


def test_code_of_the_cache_that_tells_nothing_is_not_taken(device: ptxemu.Device, watcher: Watcher) -> None:
    text = kernel(f"{ADDRESS} st.global.u32 [%rd1], 12345; ret;", ".param .u64 a")
    run(device, text, np.zeros(256, np.uint32), observed="")
    watcher.accesses.clear()
    run(device, text, np.zeros(256, np.uint32))
    assert watcher.accesses["write", "global", 4] == 64


@pytest.mark.parametrize("guard", ["%r1, 5", "%r1, 40"])
def test_lanes_that_are_off_are_not_told(device: ptxemu.Device, watcher: Watcher, guard: str) -> None:
    body = f"setp.lt.u32 %p1, {guard}; @%p1 ld.global.u32 %r3, [%rd1]; @%p1 st.global.u32 [%rd1], %r3; ret;"
    run(device, kernel(f"{ADDRESS} {body}", ".param .u64 a"), np.zeros(256, np.uint32))
    count = int(guard.split()[1])
    assert watcher.accesses["read", "global", 4] == watcher.accesses["write", "global", 4] == count


def test_an_access_that_faults_is_told_before(device: ptxemu.Device, watcher: Watcher) -> None:
    with pytest.raises(ptxemu.Fault, match="null pointer"):
        run(device, kernel("mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1; ret;", ""))
    assert set(watcher.accesses) == {("read", "global", 4)}
    assert watcher.events == ["begun", f"ended {lib.PE_NULL}"]


def test_runs_of_accesses_are_told_one_by_one(device: ptxemu.Device, watcher: Watcher) -> None:
    """They share their test (lower/core/segments.py), which is none of them."""
    loads = "".join(f"ld.global.u32 %r{10 + i}, [%rd1+{1024 * i}]; " for i in range(8))
    stores = "".join(f"st.global.u32 [%rd1+{1024 * i}], %r{10 + i}; " for i in range(8))
    run(device, kernel(f"{ADDRESS} {loads} {stores} ret;", ".param .u64 a"), np.zeros(4096, np.uint32))
    assert watcher.accesses["read", "global", 4] == watcher.accesses["write", "global", 4] == 8 * 64


def test_barriers_count_the_lanes_that_arrive(device: ptxemu.Device, watcher: Watcher) -> None:
    run(device, kernel("bar.sync 0; barrier.sync 3, 96; bar.sync 0; ret;", ""), block=96)
    assert watcher.barriers == {0: 2 * 96, 3: 96}


def test_barriers_of_clusters_and_grids_are_told(device: ptxemu.Device, watcher: Watcher) -> None:
    cluster = "barrier.cluster.arrive; barrier.cluster.wait; setp.lt.u32 %p1, %r1, 40; @%p1 barrier.cluster.arrive; @!%p1 exit;"
    text = kernel(f"mov.u32 %r1, %tid.x; {cluster} barrier.cluster.wait; ret;", "").replace("sm_80", "sm_90")
    run(device, text)
    assert watcher.barriers == {lib.PE_BARRIER_CLUSTER: 64 + 40}
    external = ".extern .func (.param .b32 r) cudaCGSynchronize (.param .b64 h, .param .b32 f);\n"
    call = "{ .param .b64 h; .param .b32 f, q; st.param.b64 [h], 0; st.param.b32 [f], 0; call (q), cudaCGSynchronize, (h, f); }"
    ptxemu.loads(kernel(f"{call} ret;", "", external), device=device)["k"][3, 48](cooperative=True)
    assert watcher.barriers[lib.PE_BARRIER_GRID] == 3 * 48


TEXELS = {
    "sust.b.2d.b32.trap [%rd1, {%r2, %r3}], %r4;": [("write", "texel", 4)],
    "suld.b.2d.b16.clamp %h1, [%rd1, {%r2, %r3}];": [("read", "texel", 2)],
    "sured.b.2d.add.u32.zero [%rd1, {%r2, %r3}], %r4;": [("update", "texel", 4)],
}


@pytest.mark.parametrize("instruction", TEXELS)
def test_texels_of_surfaces_are_told_by_where_they_lie(device: ptxemu.Device, watcher: Watcher, instruction: str) -> None:
    """Of the lanes of a whole warp, which lie side by side, and of another."""
    surface = device.surface((2, 64), format="R32_UINT")
    body = f"ld.param.u64 %rd1, [s]; mov.u32 %r4, %tid.x; shl.b32 %r2, %r4, 2; mov.u32 %r3, 1; {instruction} ret;"
    run(device, kernel(body, ".param .u64 s"), surface, block=40)
    told = {what: count for what, count in watcher.accesses.items() if what[1] != "param"}
    assert told == {what: 40 for what in TEXELS[instruction]}
    (addresses,) = watcher.addresses.values()
    assert [address - min(addresses) for address in addresses] == [4 * i for i in range(40)]


def test_texels_outside_are_not_told(device: ptxemu.Device, watcher: Watcher) -> None:
    body = "ld.param.u64 %rd1, [s]; mov.u32 %r4, %tid.x; shl.b32 %r2, %r4, 2; suld.b.1d.b32.zero %r1, [%rd1, {%r2}]; ret;"
    surface = device.surface((30,), format="R32_UINT", geometry="1d")
    run(device, kernel(body, ".param .u64 s"), surface)
    assert watcher.accesses["read", "texel", 4] == 30


@pytest.mark.parametrize(("filter", "count"), [("point", 32), ("linear", 31 * 2 + 1)])
def test_each_texel_of_a_sample_is_told(device: ptxemu.Device, watcher: Watcher, filter: str, count: int) -> None:
    """Halfway between two texels both count; beyond the last one the border does."""
    texture = device.texture(np.ones((1, 32), np.float32), geometry="2d", filter=filter, address="border")
    body = "mov.u32 %r1, %tid.x; cvt.rn.f32.u32 %f1, %r1; add.f32 %f1, %f1, 0f3F800000; mov.f32 %f2, 0f3F000000;"
    point = "add.f32 %f1, %f1, 0fBF000000;" if filter == "point" else ""
    fetch = "ld.param.u64 %rd1, [t]; tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%rd1, {%f1, %f2}]; ret;"
    run(device, kernel(f"{body} {point} {fetch}", ".param .u64 t"), texture, block=32)
    assert watcher.accesses["read", "texel", 4] == count


def test_texels_of_other_instruction_sets_are_told(device: ptxemu.Device, watcher: Watcher) -> None:
    run_case(read_case(SAMPLES / "ctm_output"), device=device)
    assert watcher.accesses["write", "texel", 4] > 0


def test_allocations_of_the_host_and_of_kernels(device: ptxemu.Device, watcher: Watcher) -> None:
    data = device.to_device(np.zeros(100, np.uint32))
    assert watcher.live == {data.address: 400}
    text = kernel(
        """{ .param .b64 p0; .param .b64 q0; st.param.b64 [p0], 24; call (q0), malloc, (p0); ld.param.b64 %rd1, [q0]; }
        mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra KEEP;
        { .param .b64 p1; st.param.b64 [p1], %rd1; call free, (p1); }
        KEEP: ret;""",
        "",
        ".extern .func (.param .b64 r) malloc (.param .b64 s);\n.extern .func free (.param .b64 p);\n",
    )
    run(device, text, block=32)
    assert sorted(watcher.live.values()) == [24] * 31 + [400]
    data.free()
    assert sorted(watcher.live.values()) == [24] * 31


def test_launches_begin_and_end(device: ptxemu.Device, watcher: Watcher) -> None:
    run(device, kernel("ret;", ""))
    assert watcher.events == ["begun", "ended 0"]
    with pytest.raises(ptxemu.InputError, match="too large for a cooperative launch"):
        ptxemu.loads(kernel("bar.sync 0; ret;", ""), device=device)["k"][1 << 20, 32](cooperative=True)
    assert watcher.events == ["begun", "ended 0"]


@pytest.mark.parametrize("device", ["jit"], indirect=True)
def test_code_that_nobody_observes_is_as_it_was(device: ptxemu.Device, watcher: Watcher) -> None:
    text = kernel(f"{ADDRESS} ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd1], %r3; ret;", ".param .u64 a")
    module = compile.front(text)
    plain, observed = (
        compile.lower(module, module.functions["k"], "row", compile.Options(observed=observed)).text for observed in ("", "all")
    )
    assert "pe_observe" not in plain and plain != observed
    assert [line for line in observed.splitlines() if "pe_observe" in line]
    run(device, text, np.zeros(256, np.uint32), observed="")
    assert not watcher.accesses and watcher.events == ["begun", "ended 0"]
