"""What a fault's record says, whichever front end the program came through."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.device.surface_object import SurfaceObject
from ptxemu.dialects.sass.memory import BIAS
from tests.support.ctm_harness import device

PTX = """.version 8.8
.target sm_90
.address_size 64
.global .surfref image[2];
.entry k() {
.reg .b32 %x, %y; .reg .b64 %s;
mov.u32 %x, %tid.x; mov.u32 %y, %ctaid.x; mul.lo.u32 %x, %x, 4; mov.u64 %s, image+8;
sured.b.add.2d.u32.trap [%s, {%x, %y}], 1;
ret; }
"""
SASS = """.header 3 image
.const c[0x0][0x148] = 3
.kernel k
S2R R4, SR_TID.X
S2R R5, SR_CTAID.X
MOV32I R8, 1
SURED.D.2D.ADD.TRAP [R4], R8, 0x52
EXIT
"""
VISA = """.kernel "k"
.decl T6 v_type=T num_elts=1 v_name=image
.decl V32 v_type=G type=ud num_elts=8

TYPED_ATOMIC.ADD (M3, 8) T6 V32.0 V0 V0 V0 V32.0 V0 V0
ret (M1, 1)
"""
CTM = """.kernel k umrt
.point r0
.const c0 = 1 0 0 0
.output A image
ALU RGB MOV r1.r, c0 ; ALPHA MOV r1, 1
OUTPUT RGB MAD.RNDR_TGT_UMRT_PER_PROCESSOR_IDX out, r0.0rg, 1, c0 ; ALPHA MOV out, r1
"""


def image(shape: tuple[int, ...] = (4, 4), **options: str) -> SurfaceObject:
    return device().surface(shape, format="R32_FLOAT", **options)


def record_of(text: str, dialect: str, grid: object, block: object, surface: SurfaceObject, index: int = 0, **options: object):
    loaded = ptxemu.loads(text, dialect=dialect, device=device(), filename=f"program.{dialect}", options=options)
    loaded.bind("image", surface, index)
    with pytest.raises(ptxemu.Fault) as caught:
        loaded["k"][grid, block]()
    return caught.value.record, str(caught.value)


CASES = {
    # 4 of 8 lanes of row 0 lie outside; the launch ends before block 1
    "ptx": (PTX, (1, 8), {}, {"kind": "surface access out of bounds", "line": 8, "thread": (4, 0, 0), "lane": 4,
             "channel": None, "surface": "image[1]", "coordinates": (16, 0, 0, 0), "count": 4}),
    "sass": (SASS, (1, 7), {}, {"kind": "surface access out of bounds", "line": 7, "thread": (4, 0, 0), "lane": 4,
              "channel": None, "surface": "image", "coordinates": (4, 0, 0, 0), "count": 3}),
    # two coordinates are missing in every channel of each of three hardware threads; M3 starts at channel 8
    "visa": (VISA, (1, 3), {}, {"kind": "surface geometry mismatch", "line": 5, "thread": (0, 0, 0), "lane": 0, "channel": 8,
              "surface": "image", "coordinates": (0, 0, 0, 0), "count": 3}),
    "ctm": (CTM, (1, (2, 2)), {"strict": True}, {"kind": "UMRT write whose alpha is not zero", "line": 6, "thread": (0, 0, 0),
             "lane": 0, "channel": None, "surface": "image", "coordinates": (0, 0, 0, 0), "count": 1}),
}  # fmt: skip


@pytest.mark.parametrize("dialect", CASES)
def test_every_field(dialect):
    """Kind, front end, kernel, source line, block, thread or channel, surface, coordinates, N; the rest counted."""
    text, (grid, block), options, expected = CASES[dialect]
    record, message = record_of(text, dialect, grid, block, image(), index=int(dialect == "ptx"), **options)
    expected = {"dialect": dialect, "kernel": "k", "block": (0, 0, 0), "size": 4, "code": 719, **expected}
    assert {name: record[name] for name in expected} == expected
    assert record["where"] == f"program.{dialect}:{record['line']}"
    x, y, *_ = record["coordinates"]
    assert f"4-byte access of surface `{record['surface']}` at x={x}, y={y}, z=0, layer=0" in message
    assert ("channel 8" in message) == (dialect == "visa")


def test_the_block_is_that_of_the_first():
    """The first fault is kept."""
    record, _ = record_of(SASS.replace("SR_TID.X\nS2R R5", "SR_TID.X\nS2R R4"), "sass", 6, 1, image())
    assert (record["block"], record["coordinates"][0]) == ((4, 0, 0), 4)


def test_lanes_of_a_reduction_on_memory_are_counted():
    """Every lane of the instruction that fails counts, in PTX and SASS."""
    buffer = device().to_device(np.zeros(32, np.uint32))
    own = buffer.address - device().arena.base + BIAS
    offsets = np.where(np.arange(32) % 3 == 2, 2, np.arange(32) * 4)  # lanes 2, 5 .. 29 are misaligned
    sass = ptxemu.loads(".kernel k\n.in R4 a\nMOV32I R5, 1\nRED.ADD [R4], R5\nEXIT", dialect="sass", device=device())
    text = """.version 8.8\n.target sm_90\n.address_size 64\n.entry k(.param .u64 p) { .reg .b64 %d<3>; .reg .b32 %r;
    ld.param.u64 %d0, [p]; mov.u32 %r, %tid.x; mad.wide.u32 %d1, %r, 8, %d0; ld.global.u64 %d2, [%d1];
    red.global.add.u32 [%d2], 1; ret; }"""
    ptx = ptxemu.loads(text, device=device())
    for loaded, addresses in ((sass, (offsets + own).astype(np.uint32)), (ptx, (offsets + buffer.address).astype(np.uint64))):
        with pytest.raises(ptxemu.Fault) as caught:
            loaded["k"][1, 32](addresses)
        record = caught.value.record
        assert (record["kind"], record["lane"], record["count"]) == ("misaligned address", 2, 10)
        assert record["address"] == int(addresses[2])
    assert buffer.copy_to_host().tolist() == [2, 2] + [0] * 30
