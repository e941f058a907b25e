"""Kernels that copy one box of a tensor to or from shared memory, and launches of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import ptxemu

ROOM = 16384  # bytes of shared memory

TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .align 128 .b8 map[128], .param .u64 out, .param .u64 coords, .param .u32 bytes)
{{
  .reg .b64 %d<8>; .reg .b32 %r<12>; .reg .b16 %h<4>; .reg .pred %p<3>;
  .shared .align 1024 .b8 box[{room}]; .shared .align 8 .b64 bar;
  mov.u64 %d1, map; cvta.param.u64 %d1, %d1;
  ld.param.u64 %d2, [out]; ld.param.u64 %d3, [coords]; ld.param.u32 %r9, [bytes]; mov.u32 %r11, %tid.x;
  ld.global.s32 %r1, [%d3]; ld.global.s32 %r2, [%d3+4]; ld.global.s32 %r3, [%d3+8]; ld.global.s32 %r4, [%d3+12];
  ld.global.s32 %r5, [%d3+16]; ld.global.u16 %h1, [%d3+20]; ld.global.u16 %h2, [%d3+22]; ld.global.u16 %h3, [%d3+24];
  setp.ne.u32 %p1, %r11, 0;
  @%p1 bra BEGUN;
  mbarrier.init.shared.b64 [bar], 1;
BEGUN:
  {before}
  bar.sync 0;
  @%p1 bra DONE;
  {copy}
DONE:
  bar.sync 0;
  {after}
  ret;
}}
"""
LOOP = """shl.b32 %r7, %r11, 2; mov.u32 %r8, box; add.u32 %r8, %r8, %r7; cvt.u64.u32 %d4, %r7; add.u64 %d4, %d2, %d4;
{name}: setp.ge.u32 %p2, %r7, {room}; @%p2 bra {name}_END;
  {body}
  add.u32 %r7, %r7, 128; add.u32 %r8, %r8, 128; add.u64 %d4, %d4, 128; bra {name};
{name}_END:"""
TO_SHARED = LOOP.format(name="IN", room=ROOM, body="ld.global.u32 %r10, [%d4]; st.shared.u32 [%r8], %r10;")
TO_SHARED += " fence.proxy.async;"
FROM_SHARED = LOOP.format(name="OUT", room=ROOM, body="ld.shared.u32 %r10, [%r8]; st.global.u32 [%d4], %r10;")
WAIT = """mbarrier.arrive.expect_tx.shared.b64 %d5, [bar], %r9;
  {copy}
  WAIT: mbarrier.try_wait.shared.b64 %p2, [bar], %d5; @!%p2 bra WAIT;"""
GROUP = "{copy}\n  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def _braces(letter: str, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{number + 1}" for number in range(count)) + "}"


def coordinates(dims: int, mode: str) -> str:
    return _braces("r", 5 if mode.endswith("4") else dims)


def load_text(
    dims: int, mode: str = "tile", *, dst: str = "shared::cluster", more: str = "", operands: str = "", filled: bool = False
) -> str:
    """Copies a box to shared memory, which may be filled from ``out`` before, and writes ``ROOM`` bytes of that to ``out``."""
    offsets = {"im2col": dims - 2, "im2col::w": 2, "im2col::w::128": 2}.get(mode, 0)
    given = f", {_braces('h', offsets)}" if offsets else ""
    copy = (
        f"cp.async.bulk.tensor.{dims}d.{dst}.global.{mode}.mbarrier::complete_tx::bytes{more} "
        f"[box+128], [%d1, {coordinates(dims, mode)}], [bar]{given}{operands};"
    )
    return TEXT.format(room=ROOM, before=TO_SHARED if filled else "", copy=WAIT.format(copy=copy), after=FROM_SHARED)


def store_text(dims: int, mode: str = "tile", reduce: str = "") -> str:
    """Copies ``ROOM`` bytes from ``out`` to shared memory, and a box of that to the tensor."""
    start = f"cp.reduce.async.bulk.tensor.{dims}d.global.shared::cta.{reduce}" if reduce else (
        f"cp.async.bulk.tensor.{dims}d.global.shared::cta")  # fmt: skip
    copy = f"{start}.{mode}.bulk_group [%d1, {coordinates(dims, mode)}], [box+128];"
    return TEXT.format(room=ROOM, before=TO_SHARED, copy=GROUP.format(copy=copy), after="")


def launch(
    device: ptxemu.Device, text: str, made: bytes, coords: Sequence[int], data: np.ndarray | None = None, *,
    offsets: Sequence[int] = (), bytes: int = 0,
) -> np.ndarray:  # fmt: skip
    """The ``ROOM`` bytes of ``out`` after a launch, ``data`` before it."""
    words = np.zeros(16, "i4")
    words[: len(coords)] = coords
    words[5:].view("u2")[: len(offsets)] = offsets
    out = device.to_device(np.zeros(ROOM, "u1") if data is None else data)
    ptxemu.loads(text, device=device)["k"][1, 32](made, out, device.to_device(words), bytes, timeout=30)
    return np.asarray(out.copy_to_host())
