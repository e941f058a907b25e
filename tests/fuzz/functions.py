"""Approximate functions of all 2**32 operands have the bits of the hardware.

    python -m tests.fuzz.functions [FUNCTION ...]                  against what is recorded
    python -m tests.fuzz.functions --library libptxm.so [...]      against bcarlet/ptx-math, and tells how many words differ
    python -m tests.fuzz.functions --library libptxm.so --record   and records its words

The library is that project's, built as shared (``-DBUILD_SHARED_LIBS=ON``). Recorded are digests of its words for each part of
the operands, in ``tests/data/mufu_digests.json``; those of an NVIDIA H200 (driver 580.159.04, 2026-11-26) are the same, and the
only ones of ``tanh`` and of functions with ``.ftz``. Each takes two to three minutes; the exit code is 1 if a word differs.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.support.places import DATA
from tests.values.test_mufu import FUNCTIONS, run

DIGESTS = DATA / "mufu_digests.json"
CHUNK = 1 << 22
PART = 1 << 28
SUFFIXES = {"sqrt": "sm6x", "sin": "sm70", "cos": "sm70"}
LOOP = """
#include <stdint.h>
void all(float (*f)(float), uint32_t n, const float *x, float *y) { for (uint32_t i = 0; i < n; i++) y[i] = f(x[i]); }
"""
Array = np.ndarray
Words = Callable[[Array], Array]


def words_of_library(path: Path, folder: Path, name: str) -> Words:
    """A function of the library on many operands, through a loop in C. NaNs are the canonical one."""
    (folder / "loop.c").write_text(LOOP)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", folder / "loop.c", "-o", folder / "loop.so"], check=True)
    loops = ctypes.CDLL(str(folder / "loop.so"))
    function = getattr(ctypes.CDLL(str(path)), f"ptxm_{name}_{SUFFIXES.get(name, 'sm5x')}")

    def words(operands: Array) -> Array:
        results = np.zeros(len(operands), np.float32)
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (operands, results))
        loops.all(function, ctypes.c_uint32(len(operands)), *pointers)
        return np.where(np.isnan(results), np.uint32(0x7FFFFFFF), results.view(np.uint32))

    return words


def chunks() -> Iterator[tuple[int, Array]]:
    """All operands, and the number of the part that they belong to."""
    for start in range(0, 1 << 32, CHUNK):
        yield start // PART, (start + np.arange(CHUNK, dtype=np.uint64)).astype(np.uint32)


def digests(words: Words) -> list[str]:
    """Of the words of each part."""
    parts = [hashlib.sha256() for _ in range((1 << 32) // PART)]
    for part, operands in chunks():
        parts[part].update(words(operands).astype("<u4").tobytes())
    return [part.hexdigest() for part in parts]


def differing(words: Words, name: str) -> int:
    """How many words are not those of ptxemu."""
    return sum(int(np.count_nonzero(run(f"{name}.approx", operands, operands) != words(operands))) for _, operands in chunks())


def agrees_with_record(name: str) -> bool:
    instruction = name.replace(".ftz", "") + ".approx" + ".ftz" * name.endswith(".ftz")
    found = digests(lambda operands: run(instruction, operands, operands, like="sm_90"))
    recorded = json.loads(DIGESTS.read_text())[name]
    wrong = [f"0x{part * PART:08x}" for part, (got, want) in enumerate(zip(found, recorded, strict=True)) if got != want]
    print(f"{name}: {f'words differ from {wrong}' if wrong else 'all words agree'}", flush=True)
    return not wrong


def agrees_with_library(library: Path, name: str, record: bool) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        words = words_of_library(library, Path(folder), name)
        if record:
            known = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
            DIGESTS.write_text(json.dumps(known | {name: digests(words)}, indent=1) + "\n")
            return True
        found = differing(words, name)
    print(f"{name}: {found} of {1 << 32} words differ", flush=True)
    return found == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if options.record and options.library is None:
        parser.error("--record needs --library")
    agreed = [
        agrees_with_library(options.library, name, options.record) if options.library else agrees_with_record(name)
        for name in options.names or (FUNCTIONS if options.library else json.loads(DIGESTS.read_text()))
    ]
    return 0 if all(agreed) else 1


if __name__ == "__main__":
    sys.exit(main())
