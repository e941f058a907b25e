"""Results of the tensor cores of an NVIDIA H200 (sm_90, driver 580.159, CUDA 13.0), measured in November 2026.

Random operands of ten kinds were multiplied: of similar and of all sizes, subnormal, such that products cancel, powers of two,
with infinities and NaNs, any bits, few that are not zero, with large elements of C, and sums near zero.  These are 4 rows of A
and 4 columns of B of each kind, for every instruction, chosen at random or because they tell models apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

import ptxemu
from tests.matrix import wgmma_model as wgmma
from tests.matrix.test_matrix import run
from tests.matrix.wgmma_kernels import SHARED, Product
from tests.matrix.wgmma_kernels import run as run_products
from tests.support import matrix_model as model
from tests.support.places import DATA

SAMPLE = DATA / "hopper_matrix.npz"
ROWS, COLUMNS = {8: [0, 3, 4, 7], 16: [1, 6, 8, 15], 64: [2, 23, 40, 61]}, [0, 3, 5, 6]
"""Where rows of A, by its number of rows, and columns of B are put; the others are zero."""

B_AT = 1 << 14
LEGAL = 0b0100  # metadata of other rows
Array = np.ndarray


class Measured(NamedTuple):
    """Bit patterns of products of rows and columns with one instruction: A's (n, 4, held), B's (n, 4, k), C's and D's (n, 4, 4).

    ``e``: four bits of metadata for each chunk of a row.  ``zero``: with ``scale-d`` false and products negated.
    """

    text: str
    selector: int
    zero: bool
    a: Array
    b: Array
    c: Array
    d: Array
    e: Array | None

    @property
    def name(self) -> str:
        return f"{self.text}-{self.selector}{'-zero' if self.zero else ''}"

    @property
    def form(self) -> model.Form:
        """Of wgmma, whose C has the type of D."""
        return model.Form(f"{self.text}.{self.text.split('.')[-3]}" if self.is_wgmma else self.text)

    @property
    def is_wgmma(self) -> bool:
        return self.text.startswith("wgmma")


def samples() -> list[Measured]:
    with np.load(SAMPLE) as data:
        return [_measured(name, data[name]) for name in sorted(data.files)]


def _measured(name: str, found: Array) -> Measured:
    text, *more = name.split()
    selector = int(more[0]) if more and more[0].isdigit() else 0
    parts = [found[part] for part in "abcd"]
    return Measured(text, selector, "zero" in more, *parts, found["e"] if "e" in found.dtype.names else None)  # type: ignore[misc]


# ---------------------------------------------------------------- what a model makes of them


def modelled(one: Measured) -> Array:
    """D, by the models of tests/support."""
    return np.stack([_modelled(one, i) for i in range(len(one.d))])


def _modelled(one: Measured, i: int) -> Array:
    form, right, start = one.form, one.b[i].T, one.c[i]
    if one.e is not None:
        right = right[np.array([model.chosen_by(row.tolist(), form.a) for row in one.e[i]])]
    if not one.is_wgmma:
        return model.multiply(one.a[i], right, start, form, "sm_90")
    a, b, c = model.values(one.a[i], form.a), model.values(right, form.b), model.values(start, form.d)
    if one.zero:
        a, c = -a, np.zeros_like(c)
    return model.patterns(wgmma.product(a, b, c, (form.a, form.b, form.d)), form.d)


# ---------------------------------------------------------------- what ptxemu makes of them


def computed(one: Measured, like: str, device: ptxemu.Device | None = None) -> Array:
    """D, by ptxemu."""
    return _by_warpgroups(one, like, device) if one.is_wgmma else _by_warps(one, like, device)


def _by_warps(one: Measured, like: str, device: ptxemu.Device | None) -> Array:
    form, rows = one.form, ROWS[one.form.m]
    held = one.a.shape[2]
    if form.quads:
        places = [model.quad_places("a", "row", "f16"), model.quad_places("b", "col", "f16"), model.quad_places("c", "", form.c)]
        of_d = model.quad_places("c", "", form.d)
    else:
        a, b = model.places_a(form.m, held, form.a), model.places_b(8, form.k, form.b)
        of_d = model.places_c(form.m, 8)
        places = [a, b, of_d]
    shapes = (form.m, held), (form.k, 8), (form.m, 8)
    placed = np.ix_(rows, range(held)), np.ix_(range(form.k), COLUMNS), np.ix_(rows, COLUMNS)
    given: list[list[list[int]]] = [[], [], []]
    for matrices in zip(one.a, one.b.transpose(0, 2, 1), one.c, strict=True):
        for part, shape in enumerate(shapes):
            whole = np.zeros(shape, matrices[part].dtype)
            whole[placed[part]] = matrices[part]
            given[part].append(model.words(model.fragment(whole, places[part]), (form.a, form.b, form.c)[part]))
    fragments = [np.array(part, np.uint32) for part in given]
    if one.e is not None:
        fragments.append(np.stack([_metadata(form, rows, chunks, one.selector) for chunks in one.e]))
    found = run(one.text, fragments, like, one.selector, device)
    return np.stack([model.matrix(model.elements(words, form.d), of_d, shapes[2])[placed[2]] for words in found])


def _metadata(form: model.Form, rows: Sequence[int], chunks: Array, selector: int) -> Array:
    """The words of a warp whose rows have these chunks."""
    words = np.full(32, LEGAL * 0x11111111, np.uint32)
    for row, mine in zip(rows, chunks, strict=True):
        for chunk, bits in enumerate(mine):
            lane, first = model.chunk_place(form, row, chunk, selector)
            words[lane] = int(words[lane]) & ~(15 << first) | int(bits) << first
    return words


def _by_warpgroups(one: Measured, like: str, device: ptxemu.Device | None) -> Array:
    form, rows = one.form, ROWS[64]
    lines = form.k * model.BITS[form.a] // 128
    layouts = wgmma.layouts(0, False, 64, 2), wgmma.layouts(0, False, 8, lines)
    transposed = (0, 0) if form.a in ("f16", "bf16") else ()
    product = Product(one.text, layouts[0].bits, layouts[1].bits + B_AT // wgmma.LINE, None if one.e is None else one.selector,
                      "%q" if one.zero else "1", (-1 if one.zero else 1, 1, *transposed))  # fmt: skip
    results = []
    for i, (a, b, c) in enumerate(zip(one.a, one.b, one.c, strict=True)):
        left, right, start = np.zeros((64, a.shape[1]), a.dtype), np.zeros((8, form.k), b.dtype), np.zeros((64, 8), c.dtype)
        left[rows], right[COLUMNS], start[np.ix_(rows, COLUMNS)] = a, b, c
        memory = np.concatenate(
            [wgmma.image(left, form.a, layouts[0], B_AT), wgmma.image(right, form.b, layouts[1], SHARED - B_AT)]
        )
        e = None if one.e is None else np.concatenate(list(_metadata_of_warps(form, rows, one.e[i], one.selector)))
        (found,) = run_products([product], memory, [wgmma.by_warp(start, form.d, wgmma.places_d(8))], None, e, like, device)
        results.append(wgmma.from_warps(found, form.d, 8)[np.ix_(rows, COLUMNS)])
    return np.stack(results)


def _metadata_of_warps(form: model.Form, rows: Sequence[int], chunks: Array, selector: int) -> Iterator[Array]:
    for warp in range(4):
        mine = [i for i, row in enumerate(rows) if row // 16 == warp]
        yield _metadata(form, [rows[i] % 16 for i in mine], chunks[mine], selector)
