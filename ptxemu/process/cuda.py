"""The CUDA libraries: where they lie, and the environment in which programs find them."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

SEARCH = "LD_LIBRARY_PATH"
PRELOAD = "LD_PRELOAD"
SEPARATORS = re.compile("[: ]")  # of PRELOAD
PACKAGE = Path(__file__).resolve().parents[1]
ASSEMBLER = "ptxemu-ptxas"


def library_path() -> Path:
    """The folder of ``libcuda.so.1``, ``libcudart.so`` of CUDA 11, 12 and 13, and ``libgpuocelot.so``."""
    return PACKAGE / "cuda" / "lib"


def include_path() -> Path:
    """The folder of ``ptxemu_embed.h``."""
    return PACKAGE / "include"


def assembler() -> Path | None:
    """The program that stands in for ptxas; None where it was not installed."""
    from importlib.metadata import distributions

    listed = (one for found in distributions(name="ptxemu") for one in found.files or () if one.name == ASSEMBLER)
    return next((path for one in listed if (path := Path(str(one.locate())).resolve()).exists()), None)


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The variables of a program that is to find the libraries, and whatever else they and Triton need; those given go first.

    ``libptxemu_preload.so`` is for programs that have CUDA's runtime linked in (cuda/preload.c).
    """
    path = str(library_path())
    search = [path, *(part for part in given.get(SEARCH, "").split(":") if part and part != path)]
    defaults = {"PTXEMU_PYTHON": sys.executable, "TRITON_DEFAULT_BACKEND": "nvidia"}
    if (ptxas := assembler()) is not None:
        defaults |= {"TRITON_PTXAS_PATH": str(ptxas), "TRITON_PTXAS_BLACKWELL_PATH": str(ptxas)}
    return {**defaults, **given, SEARCH: ":".join(search), **_preloaded(given, f"{path}/libptxemu_preload.so")}


def _preloaded(given: Mapping[str, str], own: str) -> dict[str, str]:
    """What is loaded before a program, our own library last. The list cannot name paths with spaces or colons.

    Empty places stay: rr leaves some behind its library's name, over which it writes another name in every program that starts.
    """
    if SEPARATORS.search(own):
        return {}
    text = given.get(PRELOAD)
    others = [part for part in SEPARATORS.split(text) if part != own] if text else []
    return {PRELOAD: ":".join([*others, own])}
