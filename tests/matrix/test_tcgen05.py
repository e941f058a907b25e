"""tcgen05.mma: every kind, shape and type, layouts in shared memory, A in tensor memory, and sums as hardware makes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix.tcgen05_model import LINE, PAIRS, Format, Layout
from tests.matrix.test_wgmma import near, pattern, small
from tests.support import matrix_model as model

A_AT, B_AT = 0, 1 << 14
COLUMN, A_COLUMN = 64, 480  # where sums and an A in tensor memory begin
BYTES = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]
TYPES = [
    *product(["f16"], ["f16"], ["f16", "f32"]), ("bf16", "bf16", "f32"), ("f16", "bf16", "f32"), ("tf32", "tf32", "f32"),
    *((a, b, d) for a, b in product(BYTES, BYTES) for d in ("f16", "f32")[: 1 + (a != b)]),
    *product(["s8", "u8"], ["s8", "u8"], ["s32"]),
]  # fmt: skip


GENERIC = kernels.ARRIVED.replace(kernels.COMMIT, kernels.COMMIT.replace("shared::cluster.b64 [arrived]", "b64 [%v]"))
GENERIC = f"  cvta.shared.u64 %v, arrived;\n{GENERIC}"
"""An arrival at an address of any memory."""

SOME = [("f16", "f16", "f32"), ("tf32", "tf32", "f32"), ("e4m3", "e5m2", "f32"), ("s8", "s8", "s32")]
"""One of each kind."""


COLLECTORS = [f".collector::a::{word}" for word in ("fill", "use", "lastuse", "discard")]


class Raw(NamedTuple):
    """A descriptor of any bits."""

    kind: str
    bits: int


class Product(NamedTuple):
    """One instruction: what it multiplies, descriptors of A (or None: in tensor memory) and B from the start of shared memory on,
    a predicate that says whether sums are added to, words of lanes that stay, the lane of the first row, what to keep of A, and
    the power of two by which sums are divided before."""

    format: Format | Raw
    a: int | None
    b: int
    adds: str = "%p"
    off: tuple[int, ...] = ()
    lane: int = 0
    collector: str = ""
    shift: int | None = None

    @property
    def text(self) -> str:
        name = f"tcgen05.mma.cta_group::1.kind::{self.format.kind}{self.collector}"
        at = (self.lane << 16) + COLUMN
        a = f"[%r0+{(self.lane << 16) + A_COLUMN}]" if self.a is None else "%da"
        off = ", {%x0, %x1, %x2, %x3}" if self.off else ""
        shift = "" if self.shift is None else f", {self.shift}"
        given = "".join(f"  mov.b32 %x{i}, {word};\n" for i, word in enumerate(self.off))
        given += f"  add.u64 %da, %base, {self.a or 0}; add.u64 %db, %base, {self.b}; mov.b32 %r0, %b;\n"
        return f"{given}  @%one {name} [%r0+{at}], {a}, %db, {self.format.bits}{off}, {self.adds}{shift};\n{kernels.ARRIVED}"


class Given(NamedTuple):
    """Bit patterns: A, B with a column of the matrix in each row, and the sums before."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray


def numbers(rng: np.random.Generator, shape: tuple[int, int], type: str, any: bool) -> np.ndarray:
    """Small integers, or any values near 1."""
    if type in ("e2m3", "e3m2", "e2m1"):
        _, first, width = model.NARROW[type]
        return rng.integers(0, 1 << width, shape) << first
    return near(rng, shape, type) if any and type not in model.INTEGERS else small(rng, shape, type)


def given(format: Format, seed: int, any: bool = False) -> Given:
    rng = np.random.default_rng(seed)
    a, b = (numbers(rng, (n, format.k), type, any) for n, type in ((format.rows, format.a), (format.columns, format.b)))
    shape = format.rows, format.columns
    if format.d == "s32":
        return Given(a, b, rng.choice([0, 1000, -1000, 2**31 - 5, -(2**31)], shape) & 0xFFFFFFFF)
    return Given(a, b, near(rng, shape, format.d) if any else pattern(rng.integers(-100, 101, shape), format.d))


def in_shared(of: Given, format: Format, a: Layout | None, b: Layout) -> np.ndarray:
    """Shared memory with both matrices."""
    memory = np.zeros(kernels.SHARED, np.uint8)
    if a is not None:
        memory[:B_AT] = tcgen05.image(of.a, format.a, a, B_AT)
    memory[B_AT:] = tcgen05.image(of.b, format.b, b, kernels.SHARED - B_AT)
    return memory


def around(type: str) -> int:
    """The bits of an element's byte beside those of a few bits."""
    _, first, width = model.NARROW.get(type, ("", 0, 8))
    return 0xFF & ~((1 << width) - 1 << first)


def plain(format: Format) -> tuple[Layout, Layout]:
    sides = zip((format.rows, format.columns), format.transposed, strict=True)
    a, b = (tcgen05.layouts(0, format.size, rows, transposed) for rows, transposed in sides)
    return a, b


def check(one: Product, of: Given, memory: np.ndarray, engine: str = "jit", constant: bool = False) -> None:
    """Sums of the model, in the lanes of its rows, and nothing else in tensor memory."""
    format = one.format
    assert isinstance(format, Format)
    lanes = tcgen05.lanes_of(format.rows, one.lane)
    cells = np.full((tcgen05.LANES, tcgen05.COLUMNS), 0xA5A5A5A5, np.uint32)
    place = np.ix_(lanes, np.arange(COLUMN, COLUMN + format.columns))
    cells[place] = of.c
    if one.a is None:
        words = np.ascontiguousarray((of.a | around(format.a)).astype(f"u{format.size}")).view(np.uint32)
        cells[np.ix_(lanes, np.arange(A_COLUMN, A_COLUMN + 8))] = words
    wanted = cells.copy()
    wanted[place] = tcgen05.sums(format, of.a, of.b, of.c if one.adds == "%p" else np.zeros_like(of.c), one.shift or 0)
    for lane in range(tcgen05.LANES):
        if one.off and one.off[lane // 32] >> lane % 32 & 1:
            wanted[lane] = cells[lane]
    device = ptxemu.Device(engine=engine)
    found, _ = kernels.run(kernels.kernel(one.text), cells, memory=memory, device=device, constant=constant)
    np.testing.assert_array_equal(found, wanted, err_msg=one.text)


def checked(
    format: Format, seed: int = 1, any: bool = False, engine: str = "jit", constant: bool = False, **options: object
) -> None:
    """One product of matrices without swizzling."""
    a, b = plain(format)
    of = given(format, seed, any)
    one = Product(format, a.bits, b.bits + B_AT // LINE, **options)  # type: ignore[arg-type]
    check(one, of, in_shared(of, format, a, b), engine, constant)


def texts() -> Iterator[str]:
    """Kernels with every form of tcgen05.mma, and of those that surround it."""
    for (a, b, d), inside, off in product(
        SOME, (True, False), ((), (1, 2, 3, 4))
    ):  # fmt: skip
        yield kernels.kernel(Product(Format(a, b, d, 128, 16), 0 if inside else None, 0, off=off).text)
    for collector, shift in zip(COLLECTORS, (None, 0, 7, 15), strict=True):
        for a in (0, None):
            for off in ((), (1, 2, 3, 4)):
                for sums in SOME:
                    scale = shift if sums[0] in ("f16", "tf32") else None
                    yield kernels.kernel(Product(Format(*sums, 128, 16), a, 0, off=off, collector=collector, shift=scale).text)
    yield kernels.kernel(GENERIC)
    yield from (MULTICAST.replace("SPACE", space).replace("CTAS", "1") for space in MULTICASTS)


# ---------------------------------------------------------------- types and shapes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_types(types: tuple[str, str, str]) -> None:
    checked(Format(*types, 128, 48), any=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("rows", "columns"), [(64, 8), (64, 24), (64, 256), (128, 16), (128, 80), (128, 256)])
@pytest.mark.parametrize("types", [("f16", "f16", "f32"), ("f16", "f16", "f16"), ("tf32", "tf32", "f32"), ("e4m3", "e5m2", "f32"),
                                   ("s8", "u8", "s32")], ids=".".join)  # fmt: skip
def test_shapes(types: tuple[str, str, str], rows: int, columns: int) -> None:
    checked(Format(*types, rows, columns))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", [("f16", "f16", "f32"), ("e5m2", "e2m1", "f16"), ("u8", "s8", "s32")], ids=".".join)
@pytest.mark.parametrize("rows", [64, 128])
def test_interpreted(types: tuple[str, str, str], rows: int) -> None:
    checked(Format(*types, rows, 16), engine="interpreter", off=(1, 2, 4, 8), adds="%q", constant=True)


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize("negated", list(product((False, True), repeat=2)))
@pytest.mark.parametrize("types", [("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("e4m3", "e4m3", "f32")], ids=".".join)
def test_negated_products(types: tuple[str, str, str], negated: tuple[bool, bool]) -> None:
    checked(Format(*types, 64, 16, negated=negated))


def test_sums_of_integers_that_are_too_large() -> None:
    checked(Format("s8", "s8", "s32", 128, 16, saturates=True))


@pytest.mark.parametrize("adds", ["%p", "%q", "1", "0"])
def test_whether_sums_are_added_to(adds: str) -> None:
    text = {"1": "%p", "0": "%q"}.get(adds, adds)
    checked(Format("f16", "f16", "f32", 128, 32), adds=text, constant=True)


@pytest.mark.parametrize("rows", [64, 128])
def test_lanes_that_stay(rows: int) -> None:
    checked(Format("f16", "f16", "f32", rows, 32), off=(0x80000001, 0, 0xFFFFFFFF, 0x12345678))


@pytest.mark.parametrize("lane", [0, 16])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_a_in_tensor_memory(types: tuple[str, str, str], lane: int) -> None:
    """Of 128 rows, or of 64 in either half of the lanes of each warp."""
    for rows in (64,) if lane else (64, 128):
        format = Format(*types, rows, 24 if rows == 64 else 48)
        b = plain(format)[1]
        of = given(format, 4)
        check(Product(format, None, b.bits + B_AT // LINE, lane=lane), of, in_shared(of, format, None, b))


@pytest.mark.parametrize("types", [("e2m1", "e2m3", "f32"), ("e2m3", "e4m3", "f32"), ("e3m2", "e2m1", "f16")], ids=".".join)
def test_elements_of_a_few_bits_in_tensor_memory(types: tuple[str, str, str]) -> None:
    """Each in a byte, as copies make them, whose other bits do not count."""
    format = Format(*types, 128, 16)
    b, of = plain(format)[1], given(format, 4)
    check(Product(format, None, b.bits + B_AT // LINE), of, in_shared(of, format, None, b))


@pytest.mark.parametrize("collector", COLLECTORS)
def test_what_hardware_keeps_changes_nothing(collector: str) -> None:
    checked(Format("bf16", "bf16", "f32", 64, 16), collector=collector)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("types", [("f16", "f16", "f16"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32")], ids=".".join)
@pytest.mark.parametrize("shift", [0, 1, 15])
def test_sums_that_are_divided_before(shift: int, types: tuple[str, str, str], engine: str) -> None:
    checked(Format(*types, 64, 16), engine=engine, shift=shift)


def test_arrivals_at_an_address_of_any_memory() -> None:
    kernels.run(kernels.kernel(GENERIC), np.zeros((tcgen05.LANES, tcgen05.COLUMNS), np.uint32))


MULTICAST = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p, %q, %more; .reg .b16 %ctas; .reg .b32 %t, %c, %rank, %x; .reg .b64 %out, %o, %at; .shared .b64 arrived;
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %rank, %cluster_ctarank; cvt.u16.u32 %ctas, CTAS;
  setp.eq.u32 %p, %t, 0; setp.eq.and.u32 %q, %rank, 0, %p; cvta.shared.u64 %at, arrived;
  @%p mbarrier.init.shared.b64 [arrived], 1;
  barrier.cluster.arrive; barrier.cluster.wait;
  @%q tcgen05.commit.cta_group::1.mbarrier::arrive::one.SPACE, %ctas;
  barrier.cluster.arrive; barrier.cluster.wait;
  mbarrier.test_wait.parity.shared.b64 %more, [arrived], 0;
  selp.u32 %x, 1, 0, %more; mul.wide.u32 %o, %c, 4; add.u64 %out, %out, %o; st.global.u32 [%out], %x;
  ret;
}
"""
MULTICASTS = ["shared::cluster.multicast::cluster.b64 [arrived]", "multicast::cluster.b64 [%at]"]


@pytest.mark.parametrize("space", MULTICASTS)
@pytest.mark.parametrize(("engine", "cluster"), [("jit", 1), ("jit", 4), ("interpreter", 1)])
@pytest.mark.parametrize("ctas", [0, 1, 10, 0xFFFF])
def test_arrivals_in_several_ctas(ctas: int, engine: str, cluster: int, space: str) -> None:
    out = np.full(8, 7, np.uint32)
    module = ptxemu.loads(MULTICAST.replace("SPACE", space).replace("CTAS", str(ctas)), device=ptxemu.Device(engine=engine))
    module["k"][8, 32](out, cluster=cluster)
    assert list(out) == [ctas >> rank & 1 for rank in range(cluster)] * (8 // cluster)


# ---------------------------------------------------------------- layouts


def layouts_of(size: int) -> list[tuple[int, bool]]:
    """The layouts of elements of so many bytes, and whether they are transposed."""
    return [*product(range(4), (False, True)), *([(PAIRS, True)] if size == 4 else [])]


def pairs_of_layouts() -> Iterator[tuple[str, str, tuple[int, bool], tuple[int, bool]]]:
    for type, sums in (("f16", "f32"), ("tf32", "f32"), ("e4m3", "f32"), ("s8", "s32")):
        yield from ((type, sums, a, b) for a, b in product(layouts_of(model.BITS[type] // 8), repeat=2))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("type", "sums", "a", "b"), list(pairs_of_layouts()))
def test_layouts(type: str, sums: str, a: tuple[int, bool], b: tuple[int, bool]) -> None:
    of = given(Format(type, type, sums, 128, 128), 5)
    format = Format(type, type, sums, 128, 128, transposed=(a[1], b[1]))
    left, right = (tcgen05.layouts(mode, format.size, 128, transposed) for mode, transposed in (a, b))
    one = Product(format, left.bits, right.bits + B_AT // LINE)
    check(one, of, in_shared(of, format, left, right))


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("type", ["e2m3", "e3m2", "e2m1"])
def test_layouts_of_elements_of_a_few_bits(type: str, mode: int) -> None:
    format = Format(type, type, "f32", 128, 32)
    left, right = (tcgen05.layouts(mode, 1, rows, False) for rows in (128, 32))
    of = given(format, 6)
    check(Product(format, left.bits, right.bits + B_AT // LINE), of, in_shared(of, format, left, right))


def test_slices_of_an_atom_along_k() -> None:
    """Of rows of 128 bytes, 32 at a time: their descriptors start within the atom."""
    format, rng = Format("f16", "f16", "f32", 128, 64), np.random.default_rng(8)
    a, b = small(rng, (128, 64), "f16"), small(rng, (64, 64), "f16")
    layout = tcgen05.layouts(1, 2, 128, False)
    memory = np.concatenate([tcgen05.image(a, "f16", layout, B_AT), tcgen05.image(b, "f16", layout, kernels.SHARED - B_AT)])
    for part in range(4):
        columns = slice(16 * part, 16 * part + 16)
        of = given(format, 9)._replace(a=a[:, columns], b=b[:, columns])
        check(Product(format, layout.bits + 2 * part, layout.bits + B_AT // LINE + 2 * part), of, memory)


# ---------------------------------------------------------------- what is no product

PLAIN = Format("f16", "f16", "f32", 128, 16)
SAFE = plain(PLAIN)[0].bits, plain(PLAIN)[1].bits + B_AT // LINE


def launch(one: Product, engine: str = "jit", text: str | None = None) -> None:
    cells = np.zeros((tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    kernels.run(kernels.kernel(one.text if text is None else text), cells, device=ptxemu.Device(engine=engine))


NOTHING = [
    ("f16", PLAIN._replace(rows=32).bits, "not 64 or 128 rows"), ("f16", PLAIN._replace(rows=256).bits, "not 64 or 128 rows"),
    ("f16", PLAIN._replace(columns=24).bits, "columns are not"), ("f16", PLAIN._replace(columns=0).bits, "columns are not"),
    ("f16", PLAIN._replace(columns=264).bits, "columns are not"), ("f16", PLAIN.bits | 4, r"needs \.sp"),
    ("f16", PLAIN.bits | 2 << 7, "no such elements"), ("f16", PLAIN.bits | 7 << 10, "no such elements"),
    ("f8f6f4", PLAIN.bits | 2 << 10, "no such elements"), ("tf32", PLAIN.bits, "no such elements"),
    ("i8", PLAIN.bits, "no such sums"), ("f16", PLAIN.bits & ~0x30 | 2 << 4, "no such sums"),
    ("tf32", PLAIN._replace(a="tf32", b="tf32", d="f16").bits, "no such sums"),
    ("i8", PLAIN._replace(d="s32", negated=(True, False)).bits, "not negated"),
    ("f8f6f4", PLAIN._replace(a="e2m1", transposed=(True, False)).bits, "not transposed"),
]  # fmt: skip


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(("kind", "bits", "message"), NOTHING)
def test_descriptors_of_nothing(kind: str, bits: int, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        launch(Product(Raw(kind, bits), *SAFE), engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("a", "message"), [(7 << 61, "layout of a matrix"), (3 << 61, "layout of a matrix"), (1 << 61, "layout of a matrix"),
                       (1 << 52, "layout of a matrix"), (0x3FFF, "illegal address")],
)  # fmt: skip
def test_matrices_that_are_nowhere(a: int, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=message):
        launch(Product(PLAIN, SAFE[0] | a, SAFE[1]), engine)
    with pytest.raises(Fault, match=message):
        launch(Product(PLAIN, SAFE[0], SAFE[1] | a), engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [((f"+{COLUMN}]", "+500]"), "not allocated"), ((f"+{COLUMN}]", "+65600]"), "starts at lane 0"),
     ((f"+{COLUMN}]", f"+{(16 << 16) + COLUMN}]"), "starts at lane 0")],
)  # fmt: skip
def test_sums_that_are_nowhere(changes: tuple[str, str], message: str, engine: str) -> None:
    one = Product(PLAIN, *SAFE)
    assert changes[0] in one.text
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        launch(one, engine, one.text.replace(*changes))


def test_any_descriptor_multiplies_or_faults() -> None:
    """Programs may make them of anything."""
    rng, outcomes = np.random.default_rng(12), set()
    for number in range(40):
        mask = int(rng.integers(0, 2)) * 0x3F10_3F00_3F00
        a, b = (int(x) & ~mask & ~(1 << 52) for x in rng.integers(0, 1 << 64, 2, np.uint64))
        bits = int(rng.integers(0, 1 << 32)) if number % 4 == 0 else PLAIN.bits | int(rng.integers(0, 2)) << 15
        one = Product(Raw(str(rng.choice(["f16", "f8f6f4"])), bits), a if number % 3 else None, b)
        try:
            launch(one)
            outcomes.add("multiplied")
        except Fault as fault:
            outcomes.add(fault.details.kind)
    assert outcomes == {"multiplied", "illegal address", "tensor memory misuse"}
