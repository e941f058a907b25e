"""Launches of litmus tests, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import ptxemu
from ptxemu.device.buffer import Buffer
from ptxemu.device.surface import Surface
from ptxemu.device.surface_object import SurfaceObject
from tests.clients.litmus.code import SPACING
from tests.clients.litmus.condition import Truth, Values
from tests.clients.litmus.kernel import CONSTANTS, MEETING, Plan, has_constants, kernel, registers
from tests.clients.litmus.text import Litmus


@dataclass(frozen=True)
class Seen:
    """The last values of all runs by name."""

    plan: Plan
    values: dict[str, Values]

    def holds(self) -> Truth:
        """For each run, whether the text's condition does."""
        return np.broadcast_to(self.plan.litmus.condition(self.values), self.plan.runs)


def planned(litmus: Litmus, placement: str, sets: int, rounds: int) -> Plan:
    """A plan of so many sets and rounds, or of as many as constant memory has room for, if the text needs that."""
    plan = Plan(litmus, placement, sets, rounds)
    if not has_constants(litmus):
        return plan
    return Plan(litmus, placement, 1, CONSTANTS // (plan.size * plan.lanes))


def launch(plan: Plan, device: ptxemu.Device, seed: int, timeout: float, tier: str = "best") -> Seen:
    """Runs a plan, or raises ``Fault`` or ``LaunchTimeout``."""
    litmus, names = plan.litmus, registers(plan.litmus)
    module = ptxemu.loads(kernel(plan), filename=f"{litmus.name}.ptx", device=device, tier=tier)
    initial = np.zeros((plan.runs, plan.size // SPACING, SPACING // 4), np.int32)
    initial[:, : len(litmus.locations), 0] = list(litmus.locations.values())
    if has_constants(litmus):
        cells = module.get_global("bank")[: initial.nbytes]
        cells.copy_from_host(initial.view(np.uint8).ravel())
    else:
        cells = device.to_device(initial)
    surface = _surface(device, cells)
    texture = device.texture(surface, geometry="1d")
    results = np.zeros((plan.runs, max(1, len(names))), np.uint32)
    counters = np.zeros((1 + plan.sets * plan.rounds, MEETING // 4), np.uint32)
    module["litmus"][plan.grid, plan.block](
        cells,
        results,
        counters,
        seed & 0xFFFFFFFF,
        min(device.workers, plan.grid),
        surface.handle,
        texture.handle,
        timeout=timeout,
    )
    last = cells.copy_to_host().view(np.int32).reshape(initial.shape)
    values = {f"P{thread}:{name}": results[:, i].view(np.int32).astype(np.int64) for i, (thread, name) in enumerate(names)}
    where = {name: i for i, name in enumerate(litmus.locations)}
    for name in (*litmus.locations, *litmus.aliases):
        values[name] = last[:, where[litmus.place(name)], 0].astype(np.int64)
    return Seen(plan, values)


def _surface(device: ptxemu.Device, cells: Buffer) -> SurfaceObject:
    """A surface whose texels are the words of a buffer."""
    words = cells.nbytes // 4
    options = {"geometry": "1d", "layout": "linear", "address": cells.address, "size": cells.nbytes}
    return SurfaceObject(Surface(device.arena, "R32_UINT", words, **options), device.surface_table)
