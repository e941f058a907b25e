"""Whatever the text, loading it ends in a module or in an error with a position: never in a crash or another exception.

``make fuzz`` runs this for longer.
"""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ptxemu
from ptxemu import InputError, PtxError, UnsupportedError
from ptxemu.cli.extents import parse_extent
from ptxemu.cli.values import parse_value
from ptxemu.driver.compile import Options, emit, front
from tests.support import api_kernels as ptx
from tests.support.places import SAMPLES

KERNELS = sorted(SAMPLES.glob("*/kernel.ptx"))
TEXTS = [path.read_text() for path in KERNELS] + [ptx.VARIABLES, ptx.SURFACES, ptx.STRUCT, ptx.HELLO]
TOKENS = [*'{}()[];,:@_!+<>="', "//", "/*", "*/", "0", "-1", "1e99", "0x", "0f3f800000", "%r1", "%p"]
TOKENS += [".u32", ".v4", ".entry", ".func", ".param", ".reg", "ld", "ret", "bra"]


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A real module with some pieces removed, doubled, exchanged or replaced by other tokens."""
    pieces = draw(st.sampled_from(TEXTS)).split(" ")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(pieces) - 1))
        length = draw(st.integers(1, 5))
        kind = draw(st.sampled_from(["delete", "double", "swap", "token", "characters"]))
        if kind == "delete" and len(pieces) > length:
            del pieces[at : at + length]
        elif kind == "double":
            pieces[at:at] = pieces[at : at + length]
        elif kind == "swap":
            other = draw(st.integers(0, len(pieces) - 1))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif kind == "token":
            pieces[at] = draw(st.sampled_from(TOKENS))
        else:
            pieces[at] = draw(st.text(max_size=8))
    return " ".join(pieces)


@given(mutants())
def test_mutants_load_or_fail_cleanly(text):
    for record in ptxemu.lint(text):
        assert 1 <= record.line <= text.count("\n") + 1
        assert record.column >= 1
        assert record.message


@given(mutants())
def test_mutants_compile_or_fail_cleanly(text):
    with suppress(PtxError, UnsupportedError, InputError):
        module = front(text, "mutant.ptx")
        for entry in module.entries:
            emit(module, entry.name, Options(opt=0), "obj")


@given(st.text(max_size=200))
def test_any_text(text):
    ptxemu.lint(text)


@given(st.text(max_size=40))
def test_any_argument_value(text):
    with suppress(InputError):
        parse_value(text.lstrip("@"), "--arg x")
    with suppress(InputError):
        parse_extent(text, "--grid")


@pytest.mark.parametrize("text", ["", "\n", "\0", ".version", ".version 7.8", "//", "/*", "{" * 10000, "-" * 10000])
def test_short_texts(text):
    ptxemu.lint(text)
