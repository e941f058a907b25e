"""CUDA programs on ptxemu: the libraries that they load in place of CUDA's own.

``import ptxemu.cuda`` loads ``libcuda.so.1`` and ``libcudart.so`` of CUDA 11, 12 and 13, so that what this process opens by
these names later, or links to, is ptxemu's; and so is the runtime that is linked into what it opens later (cuda/preload).
``python -m ptxemu.cuda script.py`` runs a program of Python so.
"""

from __future__ import annotations

import ctypes

from ptxemu.process.cuda import environment, include_path, library_path

__all__ = ["LIBRARIES", "environment", "include_path", "library_path"]

LIBRARIES = ("libcuda.so.1", "libcudart.so.11.0", "libcudart.so.12", "libcudart.so.13")

_loaded = [ctypes.CDLL(str(library_path() / name)) for name in (*LIBRARIES, "libptxemu_preload.so")]
