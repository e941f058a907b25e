"""Code for other processors than this one, which may run it all the same."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from ptxemu.driver import jit

AVX2 = "+avx2,+bmi2,+fma"


def without_avx512(patch: pytest.MonkeyPatch, cache: Path) -> None:
    """From here on code is that of a processor without AVX-512, and kept in a cache of its own."""
    triple, _, features = jit.host()
    if not set(AVX2.split(",")) <= set(features.split(",")):
        pytest.skip("this processor has no AVX2")
    patch.setattr(jit, "host", lambda: (triple, "x86-64-v3", AVX2))
    patch.setenv("PTXEMU_CACHE", str(cache))


def aarch64(patch: pytest.MonkeyPatch, cpu: str) -> None:
    """From here on code is that of an AArch64 processor, which LLVM knows by the name ``cpu``; it is only looked at."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    patch.setattr(jit, "host", lambda: ("aarch64-unknown-linux-gnu", cpu, ""))
    patch.setattr(jit, "_idle_machines", defaultdict(list))
