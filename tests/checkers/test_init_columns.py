"""The checker ``init`` at tensor memory: columns that nobody has written since they were allocated."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix.tcgen05_model import Format
from tests.matrix.tcgen05_products import A_COLUMN, COLUMN, METADATA, Multiplication

FILL, _, FILLED = kernels.BEGIN.partition("fill:")
OWN = FILL.replace("mov.u32 %c, 0; mov.b64 %v, %cells;", "")  # %at and %b are addresses of what is blank
LAST = kernels.END[kernels.END.index("  bar.sync 0;") :]
WAITED = "  tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;\n"
AGAIN = """  setp.ne.u32 %more, %w, 0;
  @%more bra retake;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %b, 512;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [start], 512;
retake:
  bar.sync 0;
"""
NOBODY = "which nobody has written"
device = checked_device("init")


def load(column: int, number: int = 1, shape: str = "32x32b") -> str:
    return f"  tcgen05.ld.sync.aligned.{shape}.x{number}.b32 {kernels.registers(number)}, [%at+{column}];\n"


def store(column: int, number: int = 1, shape: str = "32x32b") -> str:
    given = "".join(f"  mov.b32 %r{i}, %t;\n" for i in range(number))
    return f"{given}  tcgen05.st.sync.aligned.{shape}.x{number}.b32 [%at+{column}], {kernels.registers(number)};\n{WAITED}"


def multiply(format: Format, number: int = 1, **options: object) -> str:
    """One of them, of which ``number`` tells apart the labels."""
    text = Multiplication(format, **options).text  # type: ignore[arg-type]
    body = text[text.index(FILLED) + len(FILLED) : text.index(kernels.END)]
    return body.replace("again", f"again{number}").replace("[arrived], 0", f"[arrived], {number - 1}")


def told(device: ptxemu.Device, body: str, ctas: int = 1) -> list[str]:
    text = f"{kernels.HEAD}{OWN}{body}{LAST}  ret;\n}}\n".replace("alloc_permit", "ALLOC")
    text = "\n".join(line for line in text.splitlines() if "ALLOC" not in line)
    if ctas > 1:
        text = text.replace("  ret;\n", f"{kernels.CLUSTER_BARRIER}  ret;\n").replace("cta_group::1", "cta_group::2")
    assert device.checks is not None
    device.checks.clear()
    shape = (ctas,) if ctas > 1 else ()
    memory, values = np.zeros((*shape, kernels.SHARED), np.uint8), np.zeros((*shape, 128, 128), np.uint32)
    cluster = {"cluster": ctas} if ctas > 1 else {}
    module = ptxemu.loads(text, filename="k.ptx", device=device)
    module["k"][ctas, 128](memory, np.zeros((*shape, 512, 128), np.uint32), values, 0, 0, 0, **cluster)
    return [f"{one.message} {one.count}x" for one in device.checks.findings]


def at(lane: int, column: int, size: int, count: int, part: str = "") -> str:
    return f"{size}-byte read of tensor memory at lane {lane}, column {column}, {part}{NOBODY} {count}x"


def test_columns(device: ptxemu.Device) -> None:
    assert told(device, load(7)) == [at(0, 7, 4, 128)]
    assert told(device, store(7) + load(7)) == []
    assert told(device, store(7) + load(8)) == [at(0, 8, 4, 128)]
    assert told(device, store(7) + load(7, 2)) == [at(0, 7, 8, 128, "4 bytes of ")]
    assert told(device, store(7) + load(0, 16)) == []  # some of it
    assert told(device, store(31, 4) + load(32, 2)) == []
    assert told(device, store(7) + AGAIN + load(7)) == [at(0, 7, 4, 128)]


def test_lanes_of_another_warp(device: ptxemu.Device) -> None:
    """One of them stores."""
    one = f"  setp.ne.u32 %more, %w, 2;\n  @%more bra over;\n{store(3).removesuffix(WAITED)}over:\n{WAITED}"
    assert told(device, one + load(3)) == [at(0, 3, 4, 96)]


@pytest.mark.parametrize(("shape", "columns", "registers"), [("16x64b", 2, 1), ("16x128b", 4, 2), ("16x256b", 8, 4)])
def test_shapes_of_sixteen_lanes(device: ptxemu.Device, shape: str, columns: int, registers: int) -> None:
    given = store(64, registers, shape).replace(f".x{registers}.b32 [", ".x1.b32 [")
    assert told(device, given + load(64) + load(64 + columns - 1)) == [at(16, 64, 4, 64), at(16, 63 + columns, 4, 64)]
    assert told(device, given + load(64 + columns)) == [at(0, 64 + columns, 4, 128)]


def test_sums(device: ptxemu.Device) -> None:
    format = Format("f16", "f16", "f32", 128, 32)
    assert told(device, multiply(format, adds=False) + load(COLUMN) + load(COLUMN + 31)) == []
    assert told(device, multiply(format, adds=False) + multiply(format, 2)) == []
    assert told(device, multiply(format, adds=False) + load(COLUMN + 32)) == [at(0, COLUMN + 32, 4, 128)]
    assert told(device, multiply(format)) == [at(0, COLUMN, 128, 128)]
    assert told(device, store(COLUMN) + multiply(format)) == [at(0, COLUMN, 128, 128, "124 bytes of ")]


def test_lanes_that_stay(device: ptxemu.Device) -> None:
    """They are neither written nor do they count as read."""
    format, off = Format("f16", "f16", "f32", 128, 32), (0b1010, 0, 0, 0)
    once = multiply(format, adds=False, off=off)
    assert told(device, once + load(COLUMN)) == [at(1, COLUMN, 4, 2)]
    assert told(device, once + multiply(format, 2, off=off)) == []


def test_a_in_tensor_memory(device: ptxemu.Device) -> None:
    format = Format("f16", "f16", "f32", 128, 32)
    assert told(device, multiply(format, adds=False, a=None)) == [at(0, A_COLUMN, 16, 256)]
    assert told(device, store(A_COLUMN, 8) + multiply(format, adds=False, a=None)) == []


def test_metadata(device: ptxemu.Device) -> None:
    format = Format("f16", "f16", "f32", 128, 32, sparse=True)
    assert told(device, multiply(format, adds=False)) == [at(0, METADATA, 4, 128)]
    assert told(device, store(METADATA) + multiply(format, adds=False)) == []


def test_copies(device: ptxemu.Device) -> None:
    copy = f"  @%one tcgen05.cp.cta_group::1.128x256b [%b+16], %da;\n{kernels.ARRIVED}"
    descriptor = "  mov.b64 %da, 0x4000400010000; or.b64 %da, %da, %base;\n"
    assert told(device, descriptor + copy + load(16) + load(23)) == []
    assert told(device, descriptor + copy + load(24)) == [at(0, 24, 4, 128)]


def test_rows_that_move(device: ptxemu.Device) -> None:
    """With what nobody has written."""
    one = f"  setp.ne.u32 %more, %w, 2;\n  @%more bra over;\n{store(3, 8, '16x64b').replace('x8', 'x4')}over:\n{WAITED}"
    one = one.replace(f"{WAITED}over", "over").replace("{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}", "{%r0, %r1, %r2, %r3}")
    shift = f"  @%one tcgen05.shift.cta_group::1.down [%b+3];\n{kernels.ARRIVED}"
    assert told(device, one + load(3)) == [at(0, 3, 4, 112)]
    assert told(device, one + shift + load(3)) == [at(0, 3, 4, 113)]


def test_those_of_the_other_block(device: ptxemu.Device) -> None:
    """Of a pair, in two panels; then those of the one that multiplies are written."""
    format = Format("f16", "f16", "f32", 256, 32)
    alone = f"{kernels.CLUSTER_BARRIER}  mov.u32 %x7, %cluster_ctarank; setp.eq.and.u32 %one, %x7, 0, %one;\n"
    product = multiply(format).replace(kernels.COMMIT, kernels.PAIR_COMMIT)
    assert told(device, alone + product, 2) == [at(0, COLUMN, 64, 512)]
    own = f"  setp.ne.u32 %more, %x7, 0;\n  @%more bra over;\n{store(COLUMN, 32)}over:\n"
    seen = at(0, COLUMN, 64, 256).replace("memory", "memory of the other block of the pair")
    assert told(device, alone + own + product, 2) == [seen]
