"""Calls of the runtime by hostile programs: they end, in a fault if need be, and hold no lock for ever."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

import ptxemu
from tests.support.hostile_tools import HANG, outcome, outcomes
from tests.support.kernel_tools import kernel
from tests.support.places import ROOT

VPRINTF = ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
CALL = (
    "{ .param .b64 f; .param .b64 a; .param .b32 q; st.param.b64 [f], %rd1; st.param.b64 [a], %rd2; call (q), vprintf, (f, a); }"
)


def text_of(text: str) -> str:
    data = text.encode() + b"\0"
    return f".global .align 8 .b8 fmt[{len(data)}] = {{{', '.join(map(str, data))}}};\n"


@pytest.mark.parametrize("format", ["%d", "%lld", "%s", "%c", "%f", "%*.*d", "%p%n"])
def test_printf_arguments_anywhere(format):
    program = kernel(f"ld.param.u64 %rd2, [args]; mov.u64 %rd1, fmt; {CALL} ret;", ".param .u64 args", VPRINTF + text_of(format))
    places = [0, 1, 8, 4096, 0x400000, (1 << 63) - 4, *((1 << 64) - below for below in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 64))]
    for said, place in zip(outcomes(program, [[place] for place in places]), places, strict=True):
        assert said[0].startswith(("Fault: illegal address", "Fault: null pointer")), hex(place)


def test_printf_formats_and_strings_anywhere():
    body = f"ld.param.u64 %rd1, [at]; mov.u64 %rd2, fmt; {CALL} ret;"
    string = f"ld.param.u64 %rd3, [at]; mov.u64 %rd1, fmt; mov.u64 %rd2, slot; st.global.u64 [slot], %rd3; {CALL} ret;"
    for program in (kernel(body, ".param .u64 at", VPRINTF + text_of("x")),
                    kernel(string, ".param .u64 at", VPRINTF + text_of("%s") + ".global .align 8 .b64 slot;\n")):  # fmt: skip
        places = [1, 4096, 0x400000, 1 << 63, *((1 << 64) - below for below in (1, 8, 4096, 1 << 20))]
        for said, place in zip(outcomes(program, [[place] for place in places]), places, strict=True):
            assert said[0].startswith(("Fault: illegal address", "Fault: null pointer")), hex(place)


@pytest.mark.parametrize(
    "unit",
    ["%65536.65536f   ", "%.65536g %.65536g", "%1000000000d    ", "%.999999999x    ", "%%%%%%%%%%%%%%%%", "%-65536s%65536s  "],
)
def test_printf_without_end(unit):
    """A format of 1 MB that asks for gigabytes of text; all 32 lanes call it."""
    data = unit.encode()[:16].ljust(16)
    low, high = np.frombuffer(data, np.uint64)
    body = f"""
  mov.u64 %rd1, fmt; mov.u64 %rd3, {low}; mov.u64 %rd4, {high}; mov.u32 %r1, 0;
L:
  st.global.u64 [%rd1], %rd3; st.global.u64 [%rd1+8], %rd4;
  add.u64 %rd1, %rd1, 16; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 62500; @%p1 bra L;
  mov.u64 %rd1, fmt; mov.u64 %rd2, args;
AGAIN:
  {CALL}
  bra AGAIN;
"""
    variables = ".global .align 16 .b8 fmt[1000016];\n.global .align 8 .b8 args[1000016];\n"
    assert outcome(kernel(body, "", VPRINTF + variables), timeout=0.5).startswith("LaunchTimeout")


def test_printing_faster_than_is_read():
    """The time limit holds though there is always more to read."""
    body = f"mov.u64 %rd1, fmt; mov.u64 %rd2, 0; L: {CALL} bra L;"
    module = ptxemu.loads(kernel(body, "", VPRINTF + text_of("0123456789abcdef" * 64)))
    parts = []

    def read(text):
        parts.append(len(text))
        assert len(parts) < 500
        time.sleep(0.005)

    with pytest.raises(ptxemu.LaunchTimeout):
        module["k"][1, 32](timeout=0.2, printf=read)


def test_no_lock_is_taken_without_a_stack():
    command = [sys.executable, "-m", "tests.runtime.hostile_stack"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=2 * HANG, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
