"""All lowerings by name."""

from __future__ import annotations

from importlib import import_module

from ptxemu.lower.core.effects import EFFECTS
from ptxemu.lower.core.emit import ELEMENTWISE

MODULES = {
    "values": (
        "integer",
        "bitfield",
        "float",
        "half",
        "compare",
        "logic",
        "convert",
        "fp8",
        "fixed_point",
        "stochastic",
        "video",
        "data",
        "approx",
    ),
    "control": (
        "control",
        "sync",
        "warp",
        "cluster",
        "hints",
        "definedness",
        "inductions",
        "lone_lanes",
        "rests",
    ),
    "memory": (
        "memory",
        "atomics",
        "surfaces",
        "texture",
        "matrix",
        "tcgen05",
        "stack",
        "mbarrier",
        "copy",
        "tensor",
    ),
    "functions": ("calls",),
}


def lowerings() -> set[str]:
    """The names that rows may give as their lowering; imports every lowering module."""
    for room, names in MODULES.items():
        for name in names:
            import_module(f"ptxemu.lower.{room}.{name}")
    return {*ELEMENTWISE, *EFFECTS}
