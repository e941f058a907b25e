"""Runs the files of ``tests/isa``: PTX modules whose comments say how to launch their kernels and what must come out.

    // run: k grid=2 block=32,2 shared=64     launch kernel k; the directives below describe its arguments, in order
    // in a: u32[64] = 3*i                    an array argument, each element computed from its index i
    // in b: f32 = 1, 2.5, nan                an array argument, its elements listed
    // out d: u32[64] = a[i] + b[i]           an array argument of zeros, and what it must hold after the launch
    // inout c: s32[64] = i -> i + 1          an array argument before and after
    // arg n: u32 = 7                         a scalar argument; with [N], a struct of that many elements
    // surface s: R32_UINT 2d[4,8] = i        a surface argument (``.u64`` or ``.surfref``), texels by flat index
    // bind s: R32_UINT 2d[4,8] = i           the same, bound to the module's ``.surfref`` s instead of passed
    // surface t: texture R8_UINT 2d[4,8] = i a texture (see ``textures.py``); its name is a model in expressions
    // after s = 2*i                          what the surface must hold after the launch
    // fault: text                            the launch must end with a fault whose message contains the text

Expressions are Python's; they see ``i``, the arrays declared above them by name (as Python numbers) and the names of
:mod:`tests.isa.oracles` and :mod:`tests.isa.warp_oracles`.  Integers wrap to the element type.  An option ``shared=N`` is
dynamic shared memory in bytes.

``// form: ...`` lines are templates of many instructions with their meaning: see :mod:`tests.isa.forms`.  They are compiled with
the ``.version`` and ``.target`` of the file and its one-line ``.const``, ``.surfref`` and ``.texref`` variables; ``// with s:
...`` binds a surface or texture for all of them, written as for ``bind``.  A directive goes on over comment lines that
start with four blanks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from heapq import heapify, heappop, heapreplace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxemu
from ptxemu.driver.program import Program
from ptxemu.text.errors import Fault
from tests.isa import textures as isa_textures
from tests.isa import warp_oracles as isa_warp_oracles
from tests.isa.forms import ORACLES, SHAPES, Form, Launch, bare_kernel_text, forms_of, kernel_text, results, with_lets
from tests.isa.forms import run as run_forms
from tests.support.matrix_model import ORACLES as MATRIX_ORACLES
from tests.support.places import ISA

FILES = sorted(ISA.glob("*.ptx"))
FORMS_IN_A_KERNEL = 16
DIRECTIVE = re.compile(r"// (run|in|out|inout|arg|surface|bind|with|after|fault|form|let):? (.*)")
ARRAY = re.compile(r"(\w+): (\w+)(?:\[(\d+)\])? = (.*)")
TEXTURE = re.compile(r"(\w+): (texture .*)")
SURFACE = re.compile(r"(\w+): (\w+) (\w+)\[([\d,]+)\] = (.*)")


@dataclass
class Run:
    """One launch: its shape, its arguments in order and its expectations as (name, array, expression, listed)."""

    kernel: str
    options: dict[str, tuple[int, ...]]
    line: int
    arguments: list[Any] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    outputs: list[tuple[str, np.ndarray, str, bool]] = field(default_factory=list)
    surfaces: dict[str, Any] = field(default_factory=dict)
    bound: list[tuple[str, Any]] = field(default_factory=list)
    fault: str = ""


@dataclass
class File:
    path: Path
    text: str
    header: str
    runs: list[Run]
    forms: list[Form]
    shared: Run

    @cached_property
    def chosen(self) -> list[Form]:
        """Few of the forms, which together have every line, modifier and operand that the forms have.

        Each is the first of those that have most of what is missing, which is never more than it was.
        """
        left = [features(form) for form in self.forms]
        missing = set().union(*left)
        queue = [(-len(own), number) for number, own in enumerate(left)]
        heapify(queue)
        found = []
        while missing:
            count, number = queue[0]
            now = -len(left[number] & missing)
            if now > count:
                heapreplace(queue, (now, number))
                continue
            heappop(queue)
            found.append(self.forms[number])
            missing -= left[number]
        return found

    @property
    def others(self) -> list[Form]:
        """The forms that are not chosen."""
        chosen = set(map(id, self.chosen))
        return [form for form in self.forms if id(form) not in chosen]

    def module_text(self, group: list[Form]) -> str:
        entries = [kernel_text(group, name, name == "uniform") for name in ("varying", "uniform")]
        return "\n".join([self.header, *entries])

    def bare_text(self, group: list[Form]) -> str:
        """The forms alone, with neither inputs nor results."""
        return "\n".join([self.header, bare_kernel_text(group)])


def features(form: Form) -> set[object]:
    """What distinguishes a form from others of its file."""
    return {form.line, *form.mods, *((operand.name, operand.type, operand.pool) for operand in form.operands)}


def in_kernels(forms: list[Form], size: int = FORMS_IN_A_KERNEL) -> list[list[Form]]:
    """The forms, a kernel full at a time."""
    return [forms[start : start + size] for start in range(0, len(forms), size)]


def read(path: Path) -> File:
    text = path.read_text()
    header = "\n".join(re.findall(r"^\.(?:version|target|address_size|const|global \.(?:surf|tex)ref) .*", text, re.M))
    file = File(path, text, header, [], [], Run("", {}, 0))
    lets: dict[str, str] = {}
    for line, kind, rest in _directives(text):
        if kind == "let":
            name, _, meaning = rest.partition(" = ")
            lets[name] = with_lets(meaning, lets, line)
        elif kind == "form":
            file.forms += forms_of(with_lets(rest, lets, line), line, file.shared.values)
        elif kind == "with":
            _add(file.shared, "bind", rest)
        elif kind == "run":
            name, *options = rest.split()
            pairs = (option.split("=") for option in options)
            file.runs.append(Run(name, {key: tuple(int(x) for x in value.split(",")) for key, value in pairs}, line))
        else:
            _add(file.runs[-1], kind, rest)
    return file


def _directives(text: str) -> Iterator[tuple[int, str, str]]:
    current: list[Any] = []
    for number, line in enumerate(text.splitlines(), 1):
        if current and line.startswith("//    "):
            current[2] += " " + line[2:].strip()
            continue
        if current:
            yield tuple(current)  # type: ignore[misc]
            current = []
        if match := DIRECTIVE.match(line):
            current = [number, match[1], match[2].strip()]
    if current:
        yield tuple(current)  # type: ignore[misc]


def _add(run: Run, kind: str, rest: str) -> None:
    if kind == "fault":
        run.fault = rest
    elif kind == "after":
        name, _, expression = rest.partition(" = ")
        run.outputs.append((name, np.zeros(0), expression, False))
    elif kind in ("surface", "bind") and (described := TEXTURE.fullmatch(rest)):
        name, spec = described.groups()
        texture, run.values[name] = isa_textures.make(spec)
        if kind == "bind":
            run.bound.append((name, texture))
        else:
            run.arguments.append(texture)
    elif kind in ("surface", "bind"):
        match = SURFACE.fullmatch(rest)
        assert match, rest
        name, format, geometry, extents, expression = match.groups()
        surface = ptxemu.default_device().surface(tuple(map(int, extents.split(","))), format=format, geometry=geometry)
        count = int(np.prod(surface.shape))
        texels = _array(run, surface.dtype, count, expression).reshape(surface.shape)
        surface.copy_from_host(texels)
        run.surfaces[name] = surface
        run.values[name] = texels.ravel().tolist()
        if kind == "bind":
            run.bound.append((name, surface))
        else:
            run.arguments.append(surface)
    else:
        _add_array(run, kind, rest)


def _add_array(run: Run, kind: str, rest: str) -> None:
    match = ARRAY.fullmatch(rest)
    assert match, rest
    name, type, count, expression = match.groups()
    dtype = _dtype(type)
    first, _, last = expression.partition(" -> ") if kind == "inout" else (expression, "", expression)
    if kind == "out":
        size = int(count) if count else len(_array(run, dtype, None, expression))
        array = np.zeros(size, dtype)
    else:
        array = _array(run, dtype, int(count) if count else None, first)
        scalar = kind == "arg" and not count
        run.values[name] = array[0].item() if scalar else array.tolist()
    run.arguments.append(array if kind != "arg" else array.tobytes() if count else array[0])
    if kind in ("out", "inout"):
        run.outputs.append((name, array, last, count is None))


def _dtype(type: str) -> np.dtype[Any]:
    kind = {"u": "u", "b": "u", "s": "i", "f": "f"}[type[0]]
    return np.dtype(f"{kind}{int(type[1:]) // 8}")


def _array(run: Run, dtype: np.dtype[Any], count: int | None, expression: str) -> np.ndarray:
    names = {**ORACLES, **vars(isa_warp_oracles), **MATRIX_ORACLES, "nan": float("nan"), "inf": float("inf"), **run.values}
    code = compile(expression, f"line {run.line}", "eval")
    if count is None:
        listed = eval(code, names)
        items = list(listed) if isinstance(listed, tuple | list) else [listed]
    else:
        items = [eval(code, names) for names["i"] in range(count)]
    if dtype.kind == "f":
        return np.array(items, dtype)
    mask = (1 << 8 * dtype.itemsize) - 1
    return np.array([int(item) & mask for item in items], f"u{dtype.itemsize}").view(dtype)


@cache
def _program(path: Path, tier: str | None, way: str) -> Program:
    """A file, which is read once for all its runs that are compiled in one way."""
    return ptxemu.loads(path.read_text(), filename=path.name, tier=tier).program


def execute(file: File, run: Run, way: str = "") -> None:
    """Launch one ``run`` directive and compare. What it starts with is as the file says, however often it was run.

    ``way`` names how the caller has the code made, which runs share.
    """
    module = ptxemu.Module(_program(file.path, os.environ.get("PTXEMU_TIER"), way))
    for name, surface in run.surfaces.items():
        surface.copy_from_host(np.array(run.values[name], surface.dtype).reshape(surface.shape))
    arrays = {id(argument): argument.copy() for argument in run.arguments if isinstance(argument, np.ndarray)}
    arguments = [arrays.get(id(argument), argument) for argument in run.arguments]
    for name, surface in run.bound:
        module.bind(name, surface)
    shared = run.options.get("shared", (0,))[0]
    launcher = module[run.kernel][run.options.get("grid", (1,)), run.options.get("block", (1,))]
    if run.fault:
        with pytest.raises(Fault, match=re.escape(run.fault)):
            launcher(*arguments, shared=shared)
    else:
        launcher(*arguments, shared=shared)
    for name, array, expression, listed in run.outputs:
        got = run.surfaces[name].copy_to_host().ravel() if name in run.surfaces else arrays[id(array)]
        want = _array(run, got.dtype, None if listed else got.size, expression)
        np.testing.assert_array_equal(got, want, err_msg=f"{file.path.name}:{run.line}: {run.kernel}: {name}")


def execute_forms(file: File, group: list[Form], opt: int = 2, shapes: Collection[str] = SHAPES) -> list[str]:
    """What is wrong with a group of forms, in kernels of these shapes."""
    return run_forms(group, _launch(file, group, opt), shapes)


def computed(file: File, group: list[Form], like: str) -> list[list[np.ndarray]]:
    """What a group of forms computes where an architecture is asked for (:func:`tests.isa.forms.results`)."""
    return results(group, _launch(file, group, opt=0, like=like))


def _launch(file: File, group: list[Form], opt: int, like: str | None = None) -> Launch:
    text = file.module_text(group)
    module = ptxemu.loads(text, filename=f"{file.path.name}:{group[0].line}", opt=opt, like=like)
    for name, surface in file.shared.bound:
        module.bind(name, surface)

    def launch(name: str, shape: tuple[int, int], inputs: np.ndarray, outputs: np.ndarray) -> None:
        module[name][shape](inputs, outputs)

    return launch
