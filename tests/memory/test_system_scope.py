"""Atomics of .sys scope are atomic against threads of the program around the launch, however few workers there are."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ptxemu
from ptxemu._runtime import ffi, lib
from tests.support.kernel_tools import kernel

TRIPS = 4_000_000
STEP = 1 << 32
"""What the program adds, far above all sums of the kernel."""

UPDATES = {
    "red": "red.sys.global.add.u64 [%rd1], %rd2;",
    "atom": "atom.sys.global.add.u64 %rd3, [%rd1], %rd2; max.u64 %rd4, %rd4, %rd3;",
    "cas": "atom.sys.global.cas.b64 %rd3, [%rd1], %rd4, %rd4;",
}


def text(update: str) -> str:
    return kernel(
        f"""
  ld.param.u64 %rd1, [out]; mov.u64 %rd2, 1; mov.u64 %rd4, 0; mov.u32 %r1, 0;
LOOP:
  {update}
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {TRIPS}; @%p1 bra LOOP;""",
        ".param .u64 out",
    )


@pytest.mark.parametrize("form", UPDATES)
def test_the_program_takes_part(form: str) -> None:
    """No update of either side is lost: the program adds while one worker does."""
    device = ptxemu.Device(workers=1)
    words = device.to_device(np.zeros(2, np.uint64))
    launcher = ptxemu.loads(text(UPDATES[form]), device=device)["k"][1, 1]
    launcher(words)  # from now on the code is there
    place = ffi.cast("void *", words.address)
    operand, added, ended = STEP.to_bytes(8, "little"), 0, threading.Event()

    def launch() -> None:
        launcher(words)
        ended.set()

    thread = threading.Thread(target=launch)
    thread.start()
    while not ended.is_set():
        lib.pe_atom_update(place, lib.PE_ATOM_ADD, lib.PE_TYPE_U64, 0, operand, operand, ffi.NULL, 1)
        added += 1
    thread.join()
    assert added
    assert int(words.copy_to_host()[0]) == added * STEP + (0 if form == "cas" else 2 * TRIPS)
