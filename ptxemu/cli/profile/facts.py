"""Profiles as data of JSON, which the text and the page show too."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from ptxemu.profiler.profile import Line, Profile
from ptxemu.text.listings import Listings

NOTE = "modelled, not timed: PTX instructions, as an interpreter ran them"


def facts_of(profile: Profile, listings: Listings) -> dict[str, Any]:
    """One launch."""
    occupancy, device, work = profile.occupancy, profile.multiprocessor, profile.work
    return {
        "kernel": profile.kernel,
        "grid": profile.shape.grid,
        "block": profile.shape.block,
        "stopped": profile.stopped,
        "blocks_run": profile.counts.blocks,
        "metrics": profile.metrics,
        "classes": profile.classes,
        "opcodes": profile.opcodes,
        "occupancy": {
            "architecture": f"sm_{device.sm}", "registers": profile.registers, "registers_are_estimated": profile.estimated,
            "shared": profile.counts.shared, "blocks": occupancy.blocks, "warps": occupancy.warps, "most_warps": occupancy.most,
            "percent": occupancy.percent, "limited_by": occupancy.limited_by,
        },
        "roofline": {
            "operations": {**work.operations, "matrix": work.matrix}, "bytes_moved": work.moved, "bytes_touched": work.touched,
            "intensity": work.flops / work.touched if work.touched else None,
            "gpu": device.gpu, "balance": device.flops / device.bandwidth,
        },
        "atomics": [{"place": place, "updates": times} for place, times in profile.counts.hottest],
        "births": [
            {"kind": kind, **asdict(place), "text": text, **asdict(first)}
            for kind, place, text, first in profile.births(listings)
        ],
        "cuda": [_line(line) for line in profile.cuda_lines(listings)],
        "ptx": [_line(line) for line in profile.ptx_lines()],
    }  # fmt: skip


def sample_note(profile: Profile) -> str:
    """What a profile of some blocks is; empty if it is one of all."""
    if profile.counts.blocks == profile.shape.blocks:
        return ""
    part = f"{profile.counts.blocks} of {profile.shape.blocks} blocks"
    return f"sums are those of {part}: of the launch about {profile.sampled:.6g} times as much, if all blocks are alike"


def _line(line: Line) -> dict[str, Any]:
    return {**asdict(line.place), "text": line.text, "metrics": dict(line.sums)}
