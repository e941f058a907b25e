"""Pairs of CTAs: allocation, copies and tcgen05.mma of rows and columns that both have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix import tcgen05_products as products
from tests.matrix.tcgen05_model import LANES, LINE, Format
from tests.matrix.tcgen05_products import Multiplication
from tests.matrix.test_tcgen05 import COLLECTORS, SOME, Raw

CTAS = 2


def check(format: Format, in_columns: bool = False, any: bool = False, mode: int = 0, **options: object) -> None:
    one = Multiplication(format, CTAS, a=None if in_columns else 0, **options)  # type: ignore[arg-type]
    products.check(one, any=any, mode=mode)


def texts() -> Iterator[str]:
    """Kernels with every form of tcgen05 for pairs."""
    for (a, b, d), inside, off, sparse in product(SOME, (0, None), ((), (1,) * 8), (False, True)):
        for number, collector in enumerate(["", *COLLECTORS]):
            shift = number if number and "f8" not in Format(a, b, d, 256, 32).kind and d != "s32" else None
            format = Format(a, b, d, 256, 32, sparse=sparse)
            yield Multiplication(format, CTAS, a=inside, off=off, collector=collector, shift=shift).text
    for copy in ("128x256b", "128x128b", "4x256b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"):
        for formats in ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64"):
            yield kernels.pair_kernel(f"  @%one tcgen05.cp.cta_group::2.{copy}{formats} [%b], %base;\n")
    for space in ("shared::cluster.b64 [arrived]", "b64 [%v]", *(f"{name}, %pair" for name in MULTICASTS)):
        yield kernels.pair_kernel(f"  @%one tcgen05.commit.cta_group::2.mbarrier::arrive::one.{space};\n")
    yield ALLOCATION.format(body=alloc("32").replace(".shared::cta.b32 [start]", ".b32 [%o]"))


MULTICASTS = ["shared::cluster.multicast::cluster.b64 [arrived]", "multicast::cluster.b64 [%v]"]


# ---------------------------------------------------------------- multiplications


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize("columns", [32, 96, 256])
@pytest.mark.parametrize("types", [*SOME, ("f16", "f16", "f16"), ("s8", "u8", "s32")], ids=".".join)
def test_shapes(types: tuple[str, str, str], rows: int, columns: int) -> None:
    check(Format(*types, rows, columns), any=columns == 96)


@pytest.mark.parametrize("rows", [128, 256])
def test_few_columns(rows: int) -> None:
    check(Format("f16", "f16", "f32", rows, 16))


@pytest.mark.parametrize("rows", [128, 256])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_a_in_tensor_memory(types: tuple[str, str, str], rows: int) -> None:
    check(Format(*types, rows, 64), in_columns=True)


@pytest.mark.parametrize("rows", [128, 256])
def test_lanes_that_stay(rows: int) -> None:
    off = (0x80000001, 0, 0xFFFFFFFF, 0x12345678, 0xF0F0F0F0, 1, 2, 3)
    check(Format("bf16", "bf16", "f32", rows, 32), off=off)


@pytest.mark.parametrize("mode", range(1, 4))
def test_layouts(mode: int) -> None:
    for transposed in product((False, True), repeat=2):
        check(Format("f16", "f16", "f32", 256, 128, transposed=transposed), mode=mode)


@pytest.mark.parametrize("issuer", [0, 1])
def test_either_cta_may_multiply(issuer: int) -> None:
    check(Format("e4m3", "e2m1", "f32", 256, 64), issuer=issuer)


def test_sums_that_are_divided_before() -> None:
    check(Format("f16", "f16", "f32", 128, 32), shift=3)


PLAIN = Format("f16", "f16", "f32", 256, 32)
NOTHING = [
    ("f16", PLAIN._replace(rows=64).bits, "not 128 or 256 rows"), ("f16", PLAIN._replace(columns=24).bits, "columns are not"),
    ("i8", Format("s8", "s8", "s32", 256, 48).bits, "columns are not"),
    ("f16", PLAIN._replace(columns=0).bits, "columns are not"), ("f16", PLAIN._replace(columns=272).bits, "columns are not"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "bits", "message"), NOTHING)
def test_descriptors_of_nothing(kind: str, bits: int, message: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(Multiplication(Raw(kind, bits), CTAS))


def test_matrices_beyond_the_memory_of_a_cta() -> None:
    """What lies behind it is that of the other one."""
    with pytest.raises(Fault, match="illegal address"):
        products.launch(Multiplication(PLAIN, CTAS, b=kernels.SHARED // LINE + 8))


# ---------------------------------------------------------------- copies


@pytest.mark.parametrize("how", list(tcgen05.COPIES))
def test_copies_of_each_cta_from_its_own_memory(how: str) -> None:
    rng = np.random.default_rng(4)
    rows, line_bytes = int(how.split("x")[0]), 32 if "256b" in how else 16
    layout = tcgen05.layouts(1, 1, rows, False)
    matrix = rng.integers(0, 256, (CTAS, rows, line_bytes)).astype(np.uint8)
    memory = np.stack([tcgen05.image(one, "u8", layout, kernels.SHARED) for one in matrix])
    cells = rng.integers(0, 1 << 32, (CTAS, LANES, tcgen05.COLUMNS), np.uint32)
    copy = f"  add.u64 %da, %base, {layout.bits}; add.u32 %r0, %b, 40;\n  @%one tcgen05.cp.cta_group::1.{how} [%r0], %da;\n"
    found, _ = kernels.run(kernels.pair_kernel(copy + kernels.ARRIVED, 1), cells, memory=memory)
    for cta in range(CTAS):
        np.testing.assert_array_equal(found[cta], tcgen05.copied(cells[cta], matrix[cta].view(np.uint32), how, 40))


# ---------------------------------------------------------------- allocation

ALLOCATION = """\
.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{{
  .reg .pred %p; .reg .b32 %t, %a, %c, %odd; .reg .b64 %out, %o; .shared .b32 start;
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; and.b32 %odd, %c, 1;
  mul.wide.u32 %o, %c, 16; add.u64 %out, %out, %o;
{body}  ret;
}}
"""
ONLY_ODD = "  setp.eq.u32 %p, %odd, 0;\n  @%p exit;\n"
LATE = """\
  setp.eq.u32 %p, %odd, 0;
  @%p bra come;
  mov.b32 %t, 0;
late:
  add.u32 %t, %t, 1; setp.lt.u32 %p, %t, 5000;
  @%p bra late;
come:
"""
"""What keeps the CTA of odd rank busy."""


def alloc(columns: str) -> str:
    return f"  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [start], {columns};\n  ld.shared.b32 %a, [start];\n"


def free(columns: str, at: str = "%a") -> str:
    return f"  tcgen05.dealloc.cta_group::2.sync.aligned.b32 {at}, {columns};\n"


GIVE_UP = "  tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n"


def written(place: int) -> str:
    return f"  st.global.b32 [%out+{4 * place}], %a;\n"


def launch(body: str, blocks: int = 2, cluster: int = 2, threads: int = 32) -> np.ndarray:
    out = np.full((blocks, 4), 7, np.uint32)
    ptxemu.loads(ALLOCATION.format(body=body), filename="k.ptx")["k"][blocks, threads](out, cluster=cluster)
    return out


@pytest.mark.parametrize("late", ["", LATE, LATE.replace("eq", "ne")], ids=["together", "odd", "even"])
@pytest.mark.parametrize("cluster", [2, 4])
def test_both_ctas_get_the_same_columns(cluster: int, late: str) -> None:
    body = late + alloc("64") + written(0) + alloc("32") + written(1) + free("32") + alloc("128") + written(2)
    assert launch(body + GIVE_UP, 8, cluster).tolist() == [[0, 64, 64, 7]] * 8


def test_columns_are_free_when_both_have_freed_them() -> None:
    """The second allocation waits for the CTA that frees its columns late."""
    assert launch(alloc("512") + LATE + free("512") + alloc("512") + written(0)).tolist() == [[0, 7, 7, 7]] * 2


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (alloc("48"), "powers of two"), (alloc("512") + alloc("32"), "not free"), (GIVE_UP + alloc("32"), "given up"),
        (free("32", "0"), "not allocated there"),
        ("  shl.b32 %odd, %odd, 5; add.u32 %odd, %odd, 32;\n" + alloc("%odd"), "different numbers of columns"),
    ],
)  # fmt: skip
def test_misuse_of_allocations(body: str, message: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        launch(body)


@pytest.mark.parametrize("cluster", [1, 3])
@pytest.mark.parametrize("body", [alloc("32"), "  mov.b64 %o, 0;\n  tcgen05.cp.cta_group::2.128x128b [%t], %o;\n"])
def test_there_are_no_pairs_in_a_cluster_of_an_odd_size(body: str, cluster: int) -> None:
    with pytest.raises(Fault, match="an even number of them"):
        launch(body, cluster, cluster)


def test_two_warps_that_allocate_at_once() -> None:
    with pytest.raises(Fault, match="two warps of a CTA allocate at once"):
        launch(alloc("32"), threads=64)


@pytest.mark.parametrize("body", [ONLY_ODD + alloc("32"), ONLY_ODD.replace("eq", "ne") + alloc("32")], ids=["odd", "even"])
def test_a_cta_that_waits_for_one_that_does_not_come(body: str) -> None:
    with pytest.raises(Fault, match=r"deadlock(.|\n)*other CTA of the pair does not come"):
        launch(body)
