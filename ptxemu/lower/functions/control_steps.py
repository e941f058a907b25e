"""The steps of threaded code that decide which lanes run next, and where (:mod:`ptxemu.lower.functions.steps`).

Their routines are functions of the runtime (``csrc/launch/steps.h``, which has their words): LLVM need not make them for each
kernel.  Masks of lanes are 32-bit numbers at places in the frame.
"""

from __future__ import annotations

from ptxemu._runtime import ffi

NOWHERE = ffi.offsetof("pe_frame", "nowhere")
CURRENT = ffi.offsetof("pe_frame", "running")
TAKEN = ffi.offsetof("pe_frame", "taken")
OTHER = ffi.offsetof("pe_frame", "other")
MOVED = ffi.offsetof("pe_frame", "moved")
RELEASED = ffi.offsetof("pe_frame", "released")
ROUTINES = ffi.offsetof("pe_frame", "routines")

DECLARATION = "declare ptr @{}(ptr, ptr, i32, ptr)"


def routine(name: str) -> str:
    """The name of the runtime's function."""
    return f"pe_step_{name}"
