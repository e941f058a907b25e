"""What functions compute on ptxemu, and on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import ptxemu
from tests.clients.llvm import execute
from tests.clients.llvm.defined import defined
from tests.clients.llvm.execute import Function
from tests.clients.llvm.tools import Tools

HEAD = re.compile(r"^(?:target |source_filename).*$", re.MULTILINE)
LINKAGE = re.compile(
    r"^define (?:(?:hidden|internal|private|linkonce_odr|dso_local|protected|weak|local_unnamed_addr) )*", re.MULTILINE
)
DEVICE = ("-mtriple=nvptx64", "-mcpu=sm_90", "-mattr=+ptx80", "-nvptx-fma-level=0", "-nvptx-prec-divf32=2", "-o", "-")
HOST = ("-mtriple=x86_64-linux-gnu", "-mcpu=x86-64-v3", "-relocation-model=pic", "-filetype=obj", "-o")
SEED = 0x11A9
APPROXIMATE = re.compile(r"\bfrem\b|@llvm\.(exp2|log2|sin|cos|tanh)\.")
"""What LLVM's PTX computes in another way than its definition: x - trunc(x / y) * y with roundings, and approximations."""
ROUNDED_TWICE = re.compile(r"bfloat>? @llvm\.(?:fma|fmuladd)\.")
"""What LLVM's code for this machine rounds to f32 first."""


def compared(tools: Tools, source: str, folder: Path) -> Iterator[str]:
    """A class of results for each function that can be called on both."""
    plain = HEAD.sub("", source)
    for function in execute.functions(plain):
        alone = tools.run("llvm-extract", "-S", f"--func={function.name.strip(chr(34))}", "-o", "-", text=plain)
        if alone is not None:
            yield _verdict(tools, function, LINKAGE.sub("define ", HEAD.sub("", alone)), folder)


def _verdict(tools: Tools, function: Function, source: str, folder: Path) -> str:
    if APPROXIMATE.search(function.body):
        return "approximates, as LLVM has it"
    if ROUNDED_TWICE.search(function.body):
        return "rounds twice on this machine"
    first = _called(tools, function, source, folder, numbers=False)
    if first in ("the same", "not for both"):
        return first
    second = _called(tools, function, defined(source), folder, numbers=True)
    return "the same where LLVM defines it" if second == "the same" else second


def _called(tools: Tools, function: Function, source: str, folder: Path, *, numbers: bool) -> str:
    kernel, loop = execute.driver(function)
    ptx, code = tools.run("llc", *DEVICE, text=source + kernel), folder / "function.o"
    if ptx is None or tools.run("llc", *HOST, str(code), text=source + loop + execute.LIBRARY) is None:
        return "not for both"
    given = execute.arguments(function, np.random.default_rng(SEED), numbers)
    expected = execute.on_host(code, given, folder)
    if expected is None:
        return "not on this machine"
    try:
        found = execute.on_ptxemu(ptx, given)
    except ptxemu.Error as error:
        return f"FAIL: {function.name}: {str(error).partition(chr(10))[0]}"
    different = execute.differing(function, found, expected)
    if not different.any():
        return "the same"
    first = int(different.argmax())
    texts = [_hexadecimal(given[first, i, : kind.size]) for i, kind in enumerate(function.parameters)]
    results = [_hexadecimal(array[first, : function.result.size]) for array in (found, expected)]
    return f"FAIL: {function.name}({', '.join(texts)}) is {results[0]} for {results[1]}, and {different.sum() - 1} others"


def _hexadecimal(data: np.ndarray) -> str:
    return str(data[::-1].tobytes().hex())
