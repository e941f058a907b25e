"""CUDA programs on ptxemu: the libraries that they load in place of CUDA's own.

``import ptxemu.cuda`` loads ``libcuda.so.1``, ``libcudart.so.12`` and ``libcudart.so.13``, so that what this process opens by
these names later, or links to, is ptxemu's.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

LIBRARIES = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13")


def library_path() -> Path:
    """The folder of the libraries, for ``LD_LIBRARY_PATH``."""
    return Path(__file__).resolve().parent / "lib"


_loaded = [ctypes.CDLL(str(library_path() / name)) for name in LIBRARIES]
