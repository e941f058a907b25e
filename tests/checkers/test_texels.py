"""The checker ``race`` at texels of surfaces and textures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxemu
from tests.checkers.planted import checked_device, found, program

ROW = "shl.b32 %r3, %r1, 2; mov.u32 %r4, 1;"  # thread i has the texel (i, 1)
STORE = "sust.b.2d.b32.trap [%rd1, {%r3, %r4}], %r1;"
NEXT = "xor.b32 %r5, %r3, 128; suld.b.2d.b32.trap %r6, [%rd1, {%r5, %r4}];"  # that of a thread of the other warp
SAMPLE = """cvt.rn.f32.u32 %f1, %r1; xor.b32 %r5, %r1, 32; cvt.rn.f32.u32 %f2, %r5; mov.f32 %f3, 0f3F800000;
tex.2d.v4.u32.f32 {%r10, %r11, %r12, %r13}, [%rd3, {%f2, %f3}];"""
RACES = {
    f"{ROW} {STORE} {NEXT}": ("texel (32,1) of `surface`", "read", "write"),
    f"{ROW} mov.u32 %r3, 8; {STORE}": ("texel (2,1) of `surface`", "4-byte write of 0x1", "a write of 0x0"),
    f"{ROW} {STORE} sured.b.2d.add.u32.trap [%rd1, {{252, %r4}}], %r1;": ("texel (63,1) of `surface`", "atomic update", "write"),
    f"{ROW} {STORE} {SAMPLE}": ("texel (32,1) of `", "read", "write"),
}
ORDERED = [
    f"{ROW} {STORE} bar.sync 0; {NEXT}",
    f"{ROW} {STORE} suld.b.2d.b32.trap %r6, [%rd1, {{%r3, %r4}}];",
    f"{ROW} sured.b.2d.add.u32.trap [%rd1, {{0, %r4}}], %r1;",
    f"{ROW} {NEXT}",
    f"{ROW} mov.u32 %r3, 8; mov.u32 %r7, 5; sust.b.2d.b32.trap [%rd1, {{%r3, %r4}}], %r7;",
]


device = checked_device("race", workers=2)


def races(device: ptxemu.Device, body: str, **options: Any) -> list[str]:
    surface = device.surface(np.zeros((2, 64), np.uint32), format="R32_UINT", **options)
    texture = device.texture(surface, filter="point") if "tex." in body else 0
    return [str(finding) for finding in found(device, program(body), surface, texture, block=64)]


@pytest.mark.parametrize("body", RACES)
def test_races(device: ptxemu.Device, body: str) -> None:
    """Either access may come second."""
    assert any(all(part in text.splitlines()[0] for part in RACES[body]) for text in races(device, body))


@pytest.mark.parametrize("body", ORDERED)
def test_no_races(device: ptxemu.Device, body: str) -> None:
    assert races(device, body) == []


BYTES = """shl.b32 %r3, %r1, 0; mov.u32 %r4, 1; xor.b32 %r5, %r1, 1; cvt.u16.u32 %h1, %r1;
sust.b.2d.b8.trap [%rd1, {%r3, %r4}], %h1; BETWEEN suld.b.2d.b8.trap %h2, [%rd1, {%r5, %r4}];"""


def test_texels_that_share_a_word(device: ptxemu.Device) -> None:
    """Each thread writes its own byte, and reads that of its neighbour."""
    surface = device.surface(np.zeros((2, 64), np.uint8), format="R8_UINT")
    assert found(device, program(BYTES.replace("BETWEEN", "bar.sync 0;")), surface, 0, block=64) == []
    seen = found(device, program(BYTES.replace("BETWEEN", "")), surface, 0, block=64)
    assert sum(one.count for one in seen) == 64 and all("1-byte read of texel (" in one.message for one in seen)
    own = BYTES.replace("BETWEEN", "").replace("%r1, 1;", "%r1, 0;")
    assert found(device, program(own), surface, 0, block=64) == []


def test_blocks(device: ptxemu.Device) -> None:
    surface = device.surface(np.zeros((3, 4, 4), np.uint32), format="R32_UINT", geometry="a2d")
    body = "mov.u32 %r3, 2; mov.u32 %r4, 1; mov.u32 %r5, 8; sust.b.a2d.b32.trap [%rd1, {%r3, %r5, %r4, %r4}], %r2;"
    (finding,) = found(device, program(f"setp.eq.u32 %p1, %r1, 0; @!%p1 ret; {body}"), surface, 0, grid=2)
    assert "texel (2,1) of layer 2" in finding.message and finding.other is not None


def test_block_linear(device: ptxemu.Device) -> None:
    """Found, without coordinates."""
    assert races(device, f"{ROW} mov.u32 %r3, 8; {STORE}", layout="block_linear")


ROUNDS = """mov.u32 %r9, 0; AGAIN: sust.b.2d.b32.trap [%rd1, {%r3, %r4}], %r1; bar.sync 0;
suld.b.2d.b32.trap %r6, [%rd1, {%r3, %r5}]; END add.u32 %r9, %r9, 1; setp.lt.u32 %p6, %r9, 4; @%p6 bra AGAIN;"""
LANES = {
    "one row": "shl.b32 %r3, %r1, 2; shr.u32 %r4, %r1, 5; and.b32 %r3, %r3, 124; xor.b32 %r5, %r4, 1;",
    "two rows": "shl.b32 %r3, %r1, 2; shr.u32 %r4, %r1, 4; and.b32 %r3, %r3, 60; xor.b32 %r5, %r4, 2;",
    "two warps, one row": "shl.b32 %r3, %r1, 2; mov.u32 %r4, 1; mov.u32 %r5, 1;",
}


@pytest.mark.parametrize("lanes", LANES)
def test_rows_in_rounds(device: ptxemu.Device, lanes: str) -> None:
    """The first round is told, later ones are looked at by compiled code."""
    surface = device.surface(np.zeros((4, 64), np.uint32), format="R32_UINT")
    kept = program(LANES[lanes] + ROUNDS.replace("END", "bar.sync 0;"))
    assert found(device, kept, surface, 0, block=64) == []
    late = found(device, program(LANES[lanes] + ROUNDS.replace("END", "")), surface, 0, block=64)
    assert bool(late) == (lanes != "two warps, one row")
    assert all("of `surface`, in no order with a" in finding.message for finding in late)


def test_rows_of_one_warp_that_meet(device: ptxemu.Device) -> None:
    """Two rows of 16 lanes that the launch makes one."""
    surface = device.surface(np.zeros((4, 64), np.uint32), format="R32_UINT")
    body = """and.b32 %r3, %r1, 15; shl.b32 %r3, %r3, 2; shr.u32 %r4, %r1, 4; cvt.u32.u64 %r5, %rd3; mul.lo.u32 %r4, %r4, %r5;
    sust.b.2d.b32.trap [%rd1, {%r3, %r4}], %r1; bar.sync 0; sust.b.2d.b32.trap [%rd1, {%r3, %r4}], %r1;"""
    assert found(device, program(body), surface, 1) == []
    seen = found(device, program(body), surface, 0)
    assert [(finding.thread, finding.count) for finding in seen] == [((16, 0, 0), 16)] * 2
