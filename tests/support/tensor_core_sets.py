"""Results of tensor cores that others have measured: rows of A, columns of B, elements of C, and what hardware made of them.

Source: north-numerical-computing/MATLAB-tensor-core, folder ``model_validation`` (BSD 2-Clause, F. A. Khattak and M. Mikaitis).
``tests/data/tensor_cores.npz`` has the first rows of each set; ``tests/fuzz/tensor_cores.py`` reads all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

import ptxemu
from tests.support import matrix_model as model
from tests.support.places import DATA

SAMPLE = DATA / "tensor_cores.npz"
LIKE = {
    "V100": "sm_70", "A100": "sm_80", "A2": "sm_86", "Ada": "sm_89", "L40S": "sm_89", "H100": "sm_90", "H200": "sm_90",
    "B200": "sm_100",
}  # fmt: skip
TYPES = {"fp16": "f16", "bf16": "bf16", "tf32": "tf32", "E4M3": "e4m3", "E5M2": "e5m2"}
RESULTS = {"fp32": "f32", "fp16": "f16"}
NUMPY = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}
COLUMNS = 8  # of D: so many rows with their columns fit in one multiplication, on D's diagonal
Array = np.ndarray


class Measured(NamedTuple):
    """Bit patterns: of A (n, k), of B (n, k), of C (n) and of D (n)."""

    gpu: str
    type: str
    result: str
    a: Array
    b: Array
    c: Array
    d: Array

    @property
    def name(self) -> str:
        return f"{self.gpu}-{self.type}-{self.result}"


def bits_of(x: Array, type: str) -> Array:
    """Of numbers that the type holds exactly, or for C of f16, to nearest even."""
    found = x.astype(np.float32)
    if type in ("tf32", "f32"):
        return found.view(np.uint32)
    narrow = found.astype(NUMPY[type])
    return narrow.view(f"u{narrow.itemsize}")


def read_set(folder: Path, gpu: str, kind: str, result: str) -> Measured | None:
    """One of the public sets; None if there is none, or no instruction here computes it: those of fp8 on Hopper are wgmma's."""
    where, type = folder / gpu / kind, TYPES[kind]
    if not (where / f"d_{gpu}_{result}.txt").exists() or (
        gpu in ("H100", "H200") and kind in ("E4M3", "E5M2") and result == "fp32"
    ):
        return None

    def numbers(name: str, base: int) -> Array:
        text = (where / f"{name}.txt").read_text(encoding="utf-8-sig")
        rows = [[int(word, base) for word in line.split()] for line in text.splitlines() if line.strip()]
        return np.array(rows, np.uint32).view(np.float32)

    a, b = (bits_of(numbers(f"{name}_{gpu}_{kind}", 16), type) for name in "ab")
    c, d = numbers(f"c_{gpu}_fp32", 2)[:, 0], numbers(f"d_{gpu}_{result}", 2)[:, 0]
    return Measured(gpu, type, RESULTS[result], a, b, bits_of(c, RESULTS[result]), bits_of(d, RESULTS[result]))


def public_sets(folder: Path) -> Iterator[Measured]:
    for gpu in LIKE:
        for kind in TYPES:
            for result in RESULTS:
                found = read_set(folder, gpu, kind, result)
                if found is not None:
                    yield found


def samples() -> list[Measured]:
    with np.load(SAMPLE) as data:
        names = sorted({name.rpartition(".")[0] for name in data.files})
        return [Measured(*name.split("-"), *(data[f"{name}.{part}"] for part in "abcd")) for name in names]


def write_sample(folder: Path, rows: int) -> None:
    arrays = {f"{one.name}.{part}": getattr(one, part)[:rows] for one in public_sets(folder) for part in "abcd"}
    np.savez_compressed(SAMPLE, **arrays)


# ---------------------------------------------------------------- what ptxemu makes of them


def instruction(one: Measured) -> str:
    k, result = one.a.shape[1], one.result
    shape = "m8n8k4" if one.type == "f16" and k == 4 else f"m16n8k{k}"
    return f"mma.sync.aligned.{shape}.row.col.{result}.{one.type}.{one.type}.{result}"


def computed(one: Measured, kernel: str) -> Array:
    """D's bit patterns; the kernel multiplies fragments, one product in each CTA (tests/matrix)."""
    form = model.Form(instruction(one))
    if form.quads:
        places = [model.quad_places("a", "row", "f16"), model.quad_places("b", "col", "f16"), model.quad_places("c", "", form.d)]
    else:
        places = [
            model.places_a(form.m, form.k, form.a), model.places_b(8, form.k, form.b), model.places_c(form.m, COLUMNS),
        ]  # fmt: skip
    count = len(one.d) // COLUMNS
    fragments = [[_fragment(one, form, places, i, part) for i in range(count)] for part in range(3)]
    given = [np.array(part, np.uint32) for part in fragments]
    registers = len(places[2]) // model.packed(form.d)
    d = np.zeros((count, registers * 32), np.uint32)
    ptxemu.loads(kernel, like=LIKE[one.gpu])["k"][count, 32](*given, d)
    diagonal = np.arange(COLUMNS)
    found = [model.matrix(model.elements(words, form.d), places[2], (form.m, COLUMNS))[diagonal, diagonal] for words in d]
    return np.concatenate(found)


def _fragment(one: Measured, form: model.Form, places: list[list[model.Place]], number: int, part: int) -> list[int]:
    chosen, diagonal = slice(number * COLUMNS, (number + 1) * COLUMNS), np.arange(COLUMNS)
    shape = ((form.m, form.k), (form.k, COLUMNS), (form.m, COLUMNS))[part]
    whole = np.zeros(shape, np.uint32)
    if part == 0:
        whole[:COLUMNS] = one.a[chosen]
    elif part == 1:
        whole[:] = one.b[chosen].T
    else:
        whole[diagonal, diagonal] = one.c[chosen]
    return model.words(model.fragment(whole, places[part]), (form.a, form.b, form.c)[part])
