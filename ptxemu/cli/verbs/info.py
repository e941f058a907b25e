"""``ptxemu info``: what a PTX file holds, and whether it can be run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from msgspec import Struct
from msgspec.structs import asdict

from ptxemu.cli.isolation import isolable
from ptxemu.cli.programs import read_programs
from ptxemu.device.module_info import KernelInfo, ModuleInfo, Parameter, Use
from ptxemu.dialects import PTX, find, of_file
from ptxemu.driver.compile import front_of
from ptxemu.driver.describe import describe
from ptxemu.driver.needs import needs_of, reachable
from ptxemu.driver.requirements import written
from ptxemu.ir.numerics import checked_like
from ptxemu.ir.ops import Function, Module, Op
from ptxemu.ir.runtime_calls import is_runtime_call
from ptxemu.isa.fidelity import DEFINED, IN_WORDS, fidelity_of
from ptxemu.isa.texture import CHAPTER as TEXTURES
from ptxemu.lower.core.layout import place
from ptxemu.text.errors import InputError
from ptxemu.text.json_text import json_text
from ptxemu.text.source import SourceFile, join
from ptxemu.text.symbols import plain_name


class Count(Struct):
    """How often an instruction occurs in a kernel, the line where first, whether ptxemu runs it, and what is known of the bits of
    its results (ptxemu/isa/fidelity.py)."""

    name: str
    count: int
    line: int
    supported: bool
    bits: str


@click.command("info")
@click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--like", default="", metavar="ARCH", help="Whose results where PTX leaves bits open: sm_89 or exact.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@isolable
def command(paths: tuple[Path, ...], like: str, as_json: bool) -> None:
    """Show kernels, parameters, resources, and the instructions used and whether each is supported.

    Several PTX files are linked.
    """
    sources = read_programs(paths)
    dialects = {of_file(source.name).name for source in sources}
    if len(paths) > 1 and dialects != {PTX.name}:
        raise InputError("only files of PTX can be linked")
    module = front_of(join(sources), strict=False, dialect=dialects.pop(), like=checked_like(like))
    facts = collect(module, describe(module))
    if as_json:
        click.echo(json_text(facts))
    else:
        _show(facts)


def collect(module: Module, info: ModuleInfo) -> dict[str, Any]:
    """Everything ``info`` shows, as JSON data."""
    shared = [variable for variable in module.variables.values() if variable.space == "shared"]
    kernels = []
    for function in module.entries:
        uses = instructions(module, function)
        own = [variable for item in reachable(function) for variable in item.variables]
        static = place([*shared, *(v for v in own if v.space == "shared" and v not in shared)])[1]
        kernels.append(
            {
                **_kernel(info.kernels[function.name]),
                "static_shared": static,
                "dynamic_shared": needs_of(module, function).dynamic_shared,
                "local": place([v for v in own if v.space == "local"])[1],
                "instructions": list(map(asdict, uses)),
                "supported": all(use.supported for use in uses),
            }
        )
    version = ".".join(map(str, module.version))
    variables = [
        {"name": item.name, "space": item.space, "type": item.type, "bytes": item.size} for item in info.variables.values()
    ]
    opaque = [
        {"name": item.name, "type": item.type, "count": item.count, "initialisers": list(item.fields)}
        for item in info.handles.values()
    ]
    return {
        "file": module.source.name,
        "dialect": module.dialect,
        "version": version,
        "target": ", ".join(module.target),
        "texture_mode": texture_mode(module),
        "kernels": kernels,
        "variables": variables,
        "opaque": opaque,
    }


def texture_mode(module: Module) -> str | None:
    """Whether textures bring their samplers along (PTX ISA, "Texturing Modes"); None for a module without any."""
    variables = [*module.variables.values(), *(param.variable for function in module.entries for param in function.params)]
    declared = any(variable.type.name in ("texref", "samplerref") for variable in variables)
    if declared or any(op.row.chapter == TEXTURES for function in module.functions.values() for op in function.ops):
        return "independent" if "texmode_independent" in module.target else "unified"
    return None


def instructions(module: Module, entry: Function) -> list[Count]:
    """The instructions of a kernel and of the functions it calls, by name."""
    counts: Counter[str] = Counter()
    first: dict[str, tuple[int, bool]] = {}
    bits: dict[str, str] = {}
    for name, op in occurrences(module, entry):
        supported = op.row.supported and not _calls_unknown(op)
        counts[name] += 1
        bits[name] = fidelity_of(op.row, op.mods, module.numerics)
        known = first.setdefault(name, (module.source.line(op.pos), supported))
        first[name] = known if not known[1] or supported else (module.source.line(op.pos), False)
    return [Count(name, counts[name], *first[name], bits[name]) for name in sorted(counts)]


def occurrences(module: Module, entry: Function) -> Iterator[tuple[str, Op]]:
    """Each instruction of a kernel and of the functions it calls, with its name."""
    for op in (op for function in reachable(entry) for op in _statements(function)):
        name = written(module.source, op)
        if not _is_mark(module.source, name, op):
            yield name, op


def _statements(function: Function) -> Iterator[Op]:
    """The ops of a function, one for each instruction of the source: a dialect may make several of one."""
    seen: dict[int, Op] = {}
    for op in function.ops:
        kept = seen.setdefault(op.pos, op)
        if kept.row.supported and not op.row.supported:
            seen[op.pos] = op
    return iter(seen.values())


def _is_mark(source: SourceFile, name: str, op: Op) -> bool:
    """Whether a line is a directive or a label of a dialect, which is not counted as an instruction."""
    return name.startswith(".") or source.text[op.end : op.end + 1] == ":"


def _calls_unknown(op: Op) -> bool:
    callee = op.call.callee if op.call is not None else None
    return op.call is not None and isinstance(callee, Function) and callee.body is None and not is_runtime_call(op.call)


def _kernel(info: KernelInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "plain_name": plain_name(info.name),
        "parameters": [
            {"name": item.name, "type": type_text(item), "offset": item.offset, "uses": list(map(_use, item.uses))}
            for item in info.parameters
        ],
        "parameter_bytes": info.param_bytes,
        "limits": {name: list(values) for name, values in info.limits.items()},
    }


def _use(use: Use) -> dict[str, Any]:
    return {**asdict(use), "text": str(use)}


def type_text(parameter: Parameter) -> str:
    """A parameter's type as PTX writes it."""
    text = f".{parameter.type}"
    if parameter.elements is not None:
        text = f".align {parameter.align} {text}[{parameter.elements}]"
    return text if parameter.pointer is None else f"{text} .ptr .{parameter.pointer[0]} .align {parameter.pointer[1]}"


def _show(facts: dict[str, Any]) -> None:
    language = find(facts["dialect"]).title + (f" {facts['version']}" if facts["dialect"] == "ptx" else "")
    click.echo(f"{facts['file']}: {language} for {facts['target']}, {len(facts['kernels'])} kernel(s)")
    for item in facts["variables"]:
        click.echo(f"  .{item['space']} .{item['type']} {item['name']}: {item['bytes']} bytes")
    if facts["texture_mode"] is not None:
        click.echo(f"  texturing mode: {facts['texture_mode']}")
    for item in facts["opaque"]:
        preset = ", ".join(map(_initialiser, item["initialisers"]))
        click.echo(f"  .{item['type']} {item['name']}[{item['count']}]" + (f" = {preset}" if preset else ""))
    for kernel in facts["kernels"]:
        _show_kernel(kernel)


def _initialiser(fields: dict[str, int]) -> str:
    return "{" + ", ".join(f"{name} = {value}" for name, value in fields.items()) + "}"


def _uses_in_words(uses: list[dict[str, Any]]) -> str:
    """``: float*, read``; of a struct, with the bytes at which pointers and handles lie."""
    if [use["offset"] for use in uses] == [0]:
        return f": {uses[0]['text']}"
    return "".join(f"\n       +{use['offset']}: {use['text']}" for use in uses)


def _show_kernel(kernel: dict[str, Any]) -> None:
    symbol = "" if kernel["plain_name"] == kernel["name"] else f" ({kernel['name']})"
    click.echo(f"\nkernel {kernel['plain_name']}{symbol}" + ("" if kernel["supported"] else "  (not supported)"))
    for number, item in enumerate(kernel["parameters"]):
        click.echo(f"  {number}: {item['type']} {item['name']}{_uses_in_words(item['uses'])}")
    limits = "".join(f", .{name} {' x '.join(map(str, values))}" for name, values in kernel["limits"].items() if values)
    dynamic = " + dynamic" if kernel["dynamic_shared"] else ""
    memory = f"{kernel['static_shared']}{dynamic} bytes shared, {kernel['local']} bytes local a thread"
    click.echo(f"  {kernel['parameter_bytes']} bytes of parameters, {memory}{limits}")
    width = max((len(use["name"]) for use in kernel["instructions"]), default=0)
    for use in kernel["instructions"]:
        known = "" if use["bits"] == DEFINED else f"  {IN_WORDS[use['bits']]}"
        note = known if use["supported"] else f"  not supported (line {use['line']})"
        click.echo(f"  {use['name']:<{width}} {use['count']:>5}{note}")
