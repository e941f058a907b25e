"""What a launch is given, as the options of ``ptxemu run`` describe it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import Struct

from ptxemu.case.arguments import Name, StructSpec, check_names
from ptxemu.case.array_files import SUFFIXES
from ptxemu.case.arrays import Array
from ptxemu.case.images import SamplerSpec, SurfaceSpec, TextureSpec
from ptxemu.case.sources import Source
from ptxemu.case.tolerance import LIMITS, Tolerance, tolerance_of
from ptxemu.cli.images import Given, parse_sampler, parse_surface, parse_texture
from ptxemu.cli.structs import OPEN, parse_struct
from ptxemu.cli.values import Value, parse_number, parse_value, split_pair
from ptxemu.text.errors import InputError, shown

T = TypeVar("T")


class KernelOptions(Struct, frozen=True):
    """Options of a launch as they are written; a case file sets all of them by itself."""

    entry: str | None = None
    grid: str | None = None
    block: str | None = None
    arg: Sequence[str] = ()
    buffer: Sequence[str] = ()
    surface: Sequence[str] = ()
    texture: Sequence[str] = ()
    sampler: Sequence[str] = ()
    bind: Sequence[str] = ()
    out: Sequence[str] = ()
    print: Sequence[str] = ()
    expect: Sequence[str] = ()
    tolerance: str | None = None
    shared: int | None = None
    cooperative: bool | None = None
    cluster: str | None = None
    strict: bool | None = None
    fidelity: bool | None = None


class Inputs(Struct):
    """What a launch works on, by name."""

    buffers: dict[str, Source] = {}
    surfaces: dict[str, SurfaceSpec] = {}
    textures: dict[str, TextureSpec] = {}
    samplers: dict[str, SamplerSpec] = {}
    args: dict[str, Name | StructSpec | bytes | int | float] = {}


class Wanted(Struct, frozen=True):
    """What is to be done with the results; all of it is checked before the launch."""

    files: dict[str, Path]
    expected: dict[str, Array]
    tolerance: Tolerance


def read_inputs(options: KernelOptions) -> Inputs:
    """The arrays, images and arguments that options describe."""
    inputs = Inputs(
        buffers=named_texts(options.buffer, "--buffer", _array),
        surfaces=named_texts(options.surface, "--surface", parse_surface),
        textures=named_texts(options.texture, "--texture", parse_texture),
        samplers=named_texts(options.sampler, "--sampler", parse_sampler),
    )
    written = named_texts(options.arg, "--arg", lambda _, text: text)
    images = {*inputs.surfaces, *inputs.textures, *inputs.samplers}
    names = {*images, *inputs.buffers, *written}
    for name, text in written.items():
        value = _argument(text, names, f"--arg {name}")
        if isinstance(value, np.ndarray):
            inputs.buffers[name], value = Given(value), Name(name)
        inputs.args[name] = value
    for name, argument in inputs.args.items():
        if isinstance(argument, Name) and isinstance(inputs.args.get(argument.name), int | float | bytes):
            raise InputError(f"--arg {name}: '{argument.name}' is a number, not an array, surface, texture or sampler")
        check_names(argument, inputs.buffers, images, f"--arg {name}")
    counts = Counter([*inputs.buffers, *inputs.surfaces, *inputs.textures, *inputs.samplers])
    for name, count in counts.items():
        if count > 1:
            raise InputError(f"{shown(name)} names {count} of the buffers, surfaces, textures and samplers")
    return inputs


def _argument(text: str, names: Collection[str], where: str) -> Name | StructSpec | Value:
    """What ``--arg NAME=TEXT`` gives: something that has one of the names, or what the text describes."""
    if text.startswith(OPEN):
        return parse_struct(text, where)
    return Name(text) if text in names and parse_number(text) is None else parse_value(text, where)


def named_texts(texts: Iterable[str], option: str, parse: Callable[[str, str], T]) -> dict[str, T]:
    """What ``NAME=TEXT`` options describe, by name."""
    found: dict[str, T] = {}
    for text in texts:
        name, value = split_pair(text, option)
        if name in found:
            raise InputError(f"{option} {name} is given twice")
        found[name] = parse(name, value)
    return found


def _array(name: str, text: str, option: str = "--buffer") -> Given:
    value = parse_value(text, f"{option} {name}")
    if not isinstance(value, np.ndarray):
        raise InputError(f"{option} {name}: must be @file.npy or an array such as zeros:f32:1024")
    return Given(value)


def read_wanted(options: KernelOptions, arrays: Sequence[str]) -> Wanted:
    files = named_texts(options.out, "--out", lambda _, text: Path(text))
    expected = named_texts(options.expect, "--expect", lambda name, text: _array(name, text, "--expect").make())
    for option, names in (("--out", files), ("--expect", expected)):
        for name in names:
            if name not in arrays:
                raise InputError(f"{option} {name}: --arg {name} is not an array, nor is there a surface of this name")
    for name, path in files.items():
        if path.suffix not in SUFFIXES:
            raise InputError(f"--out {name}={path}: must end in {' or '.join(SUFFIXES)}")
    return Wanted(files, expected, parse_tolerance(options.tolerance or ""))


def parse_tolerance(text: str) -> Tolerance:
    """``abs=1e-6,rel=1e-5,ulp=2``, any of them."""
    limits: dict[str, int | float] = {}
    for part in text.split(",") if text else ():
        name, number = part.partition("=")[0], parse_number(part.partition("=")[2])
        kind = LIMITS.get(name)
        if kind is None or number is None or (kind is int and not float(number).is_integer()):
            known = ", ".join(f"{key}={'COUNT' if LIMITS[key] is int else 'NUMBER'}" for key in LIMITS)
            raise InputError(f"--tolerance {shown(part)}: must be {known}")
        limits[name] = kind(number)
    return tolerance_of(limits, lambda key, problem: InputError(f"--tolerance: {key} {problem}"))
