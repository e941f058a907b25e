"""All lowerings by name."""

from __future__ import annotations

from importlib import import_module

from ptxemu.lower.effects import EFFECTS
from ptxemu.lower.emit import ELEMENTWISE

MODULES = (
    "integer", "bitfield", "floating", "half", "compare", "logic", "convert", "narrow", "video", "data", "approx",
    "control", "memory", "sync", "atomics", "surfaces", "texture", "warp", "matrix", "calls", "stack",
    "mbarrier", "copy", "cluster", "hints",
)  # fmt: skip


def lowerings() -> set[str]:
    """The names that rows may give as their lowering; imports every lowering module."""
    for name in MODULES:
        import_module(f"ptxemu.lower.{name}")
    return {*ELEMENTWISE, *EFFECTS}
