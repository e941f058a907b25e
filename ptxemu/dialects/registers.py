"""Surfaces and constants that registers describe in memory, for the host; CTM is the one instruction set that has them."""

from __future__ import annotations

from ptxemu.dialects.ctm.memory import constants_of, surface_of

__all__ = ["constants_of", "surface_of"]
