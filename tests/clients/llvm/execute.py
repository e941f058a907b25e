"""Functions of numbers in LLVM IR, on ptxemu and on this machine: the same code around both reads arguments and keeps results."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ptxemu

DEFINITION = re.compile(
    r"^define (?:[\w()]+ )*?(?P<result>[\w<>{} ]+?) @(?P<name>[\w$.]+|\"[^\"]+\")"
    r"\((?P<parameters>[^)]*)\)(?P<rest>[^\n]*)\{[^\n]*\n(?P<body>.*?)^\}",
    re.MULTILINE | re.DOTALL,
)
NUMBER = re.compile(r"(?:<(?P<count>\d+) x )?(?P<kind>i1|i8|i16|i32|i64|i128|half|bfloat|float|double)>?")
ATTRIBUTES = re.compile(r"\b(?:noundef|signext|zeroext|inreg|noext)\s+|\s+(?:noundef|signext|zeroext|inreg|%[\w.]+|\"[^\"]*\")")
IMPURE = re.compile(
    r"\bptr\b|@llvm\.nvvm|\basm\b|\b(?:load|store|alloca|atomicrmw|cmpxchg|fence|unreachable|invoke|global)\b|@(?!llvm\.)[\w$.\"]+\("
)
BYTES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "i128": 16, "half": 2, "bfloat": 2, "float": 4, "double": 8}
FLOATS = {"half": np.float16, "float": np.float32, "double": np.float64}
COUNT = 4096
"""Calls of a function."""
BLOCK = 128
STRIDE = 64
"""Bytes from one value to the next, in the memory of arguments and results; each is one word of it at most."""


@dataclass(frozen=True)
class Kind:
    """A number or a vector of them."""

    text: str
    element: str
    count: int

    @property
    def size(self) -> int:
        return BYTES[self.element] * self.count


@dataclass(frozen=True)
class Function:
    name: str
    result: Kind
    parameters: tuple[Kind, ...]
    body: str


def kind_of(text: str) -> Kind | None:
    found = NUMBER.fullmatch(text)
    if found is None or (found["count"] is not None) != text.startswith("<"):
        return None
    count = int(found["count"] or 1)
    if (found["kind"] == "i1" and count > 1) or BYTES[found["kind"]] * count > STRIDE:
        return None
    return Kind(text, found["kind"], count)


def functions(source: str) -> list[Function]:
    """Those of a module that only calculate."""
    made = []
    for found in DEFINITION.finditer(re.sub(r";[^\n]*", "", source)):
        result = kind_of(ATTRIBUTES.sub("", found["result"]).strip())
        given = [item for item in re.split(r",(?![^<]*>)", found["parameters"]) if item.strip()]
        parameters = [kind_of(ATTRIBUTES.sub("", item).strip()) for item in given]
        plain = result is not None and None not in parameters and parameters and "_kernel" not in found[0].partition("@")[0]
        if plain and not IMPURE.search(found["body"]):
            kinds = tuple(kind for kind in parameters if kind is not None)
            made.append(Function(found["name"], result, kinds, found["body"]))
    return made


def driver(function: Function) -> tuple[str, str]:
    """Functions that call it: once with the number of a thread, and from 0 to a limit."""
    step = len(function.parameters)
    loads = "".join(
        f"  %p{i} = getelementptr i8, ptr %from, i64 {STRIDE * i}\n  %a{i} = load {kind.text}, ptr %p{i}, align 16\n"
        for i, kind in enumerate(function.parameters)
    )
    given = ", ".join(f"{kind.text} %a{i}" for i, kind in enumerate(function.parameters))
    one = f"""
define void @one_call(ptr %in, ptr %out, i64 %i) noinline {{
  %x = mul i64 %i, {STRIDE * step}
  %from = getelementptr i8, ptr %in, i64 %x
{loads}  %r = call {function.result.text} @{function.name}({given})
  %y = mul i64 %i, {STRIDE}
  %to = getelementptr i8, ptr %out, i64 %y
  store {function.result.text} %r, ptr %to, align 16
  ret void
}}
"""
    kernel = f"""{one}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
define ptx_kernel void @all_calls(ptr %in, ptr %out) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %c = mul i32 %b, {BLOCK}
  %n = add i32 %c, %t
  %i = zext i32 %n to i64
  call void @one_call(ptr %in, ptr %out, i64 %i)
  ret void
}}
"""
    loop = f"""{one}
define void @all_calls(ptr %in, ptr %out, i64 %limit) {{
entry:
  br label %again
again:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  call void @one_call(ptr %in, ptr %out, i64 %i)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %limit
  br i1 %more, label %again, label %end
end:
  ret void
}}
"""
    return kernel, loop


def arguments(function: Function, random: np.random.Generator, numbers: bool) -> np.ndarray:
    """Random bits: all of them, those of small numbers, and those of floats near one, in turn. ``numbers``: without NaNs."""
    made = np.zeros((COUNT, len(function.parameters), STRIDE), np.uint8)
    for i, kind in enumerate(function.parameters):
        width = BYTES[kind.element]
        values = np.frombuffer(random.bytes(COUNT * kind.size), np.uint8).reshape(COUNT, kind.count, width).copy()
        if kind.element == "i1":
            values &= 1
        elif kind.element in FLOATS:
            near = (random.standard_normal((COUNT, kind.count)) * 4).astype(FLOATS[kind.element])
            values[::2] = near.view(np.uint8).reshape(COUNT, kind.count, width)[::2]
        elif kind.element == "bfloat":
            near = (random.standard_normal((COUNT, kind.count)) * 4).astype(np.float32).view(np.uint16)[:, 1::2]
            values[::2] = near.copy().view(np.uint8).reshape(COUNT, kind.count, width)[::2]
        else:
            values[1::4, :, 1:] = 0
            values[1::4, :, 0] &= 31
            values[2::8] = 255
        if numbers and kind.element in (*FLOATS, "bfloat"):
            values[_no_numbers(kind.element, values)] = 0
        made[:, i, : kind.size] = values.reshape(COUNT, kind.size)
    return made


def _no_numbers(element: str, values: np.ndarray) -> np.ndarray:
    """Which elements, given as their bytes, are NaNs."""
    if element == "bfloat":
        return (values.view(np.uint16)[..., 0] & 0x7FFF) > 0x7F80
    return np.isnan(values.view(FLOATS[element])[..., 0])


LIBRARY = """
define bfloat @__truncsfbf2(float %x) {
  %b = bitcast float %x to i32
  %h = lshr i32 %b, 16
  %odd = and i32 %h, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %b, %half
  %up = lshr i32 %sum, 16
  %quiet = or i32 %h, 64
  %nan = fcmp uno float %x, 0.0
  %r = select i1 %nan, i32 %quiet, i32 %up
  %t = trunc i32 %r to i16
  %f = bitcast i16 %t to bfloat
  ret bfloat %f
}
"""
"""What compilers' libraries lack: f32 to bf16, to the nearest, ties to even."""


def on_ptxemu(ptx: str, given: np.ndarray) -> np.ndarray:
    out = np.zeros((COUNT, STRIDE), np.uint8)
    ptxemu.loads(ptx, filename="function.ptx")["all_calls"][COUNT // BLOCK, BLOCK](given, out, timeout=60.0)
    return out


RUNNER = """
import ctypes, sys
import numpy as np
given = np.fromfile(sys.argv[2], np.uint8)
out = np.zeros(int(sys.argv[3]) * int(sys.argv[4]), np.uint8)
library = ctypes.CDLL(sys.argv[1])
library.all_calls(given.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(int(sys.argv[3])))
out.tofile(sys.argv[5])
"""


def on_host(object_file: Path, given: np.ndarray, folder: Path) -> np.ndarray | None:
    """In a process of its own, as a division by zero ends it. None if it does, or does not end by itself."""
    library, inputs, results = folder / "function.so", folder / "inputs", folder / "results"
    given.tofile(inputs)
    link = ["cc", "-shared", "-Wl,-Bsymbolic", "-o", library, object_file, "-lm"]  # C's library has a function fadd, too
    linked = subprocess.run(link, capture_output=True, check=False)
    if linked.returncode:
        return None
    command = [sys.executable, "-c", RUNNER, library, inputs, str(COUNT), str(STRIDE), results]
    try:
        subprocess.run(command, capture_output=True, check=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    return np.fromfile(results, np.uint8).reshape(COUNT, STRIDE)


def differing(function: Function, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Which results differ, except in which bits no numbers have."""
    kind = function.result
    width = BYTES[kind.element]
    one, two = (np.ascontiguousarray(array[:, : kind.size]).reshape(COUNT, kind.count, width) for array in (left, right))
    different = (one != two).any(axis=2)
    if kind.element in (*FLOATS, "bfloat"):
        different &= ~(_no_numbers(kind.element, one) & _no_numbers(kind.element, two))
    return different.any(axis=1)
