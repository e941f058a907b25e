"""``ptxemu compile``: look at the code of kernels."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from ptxemu.cli.extents import parse_extent
from ptxemu.cli.isolation import isolable
from ptxemu.cli.processors import checked_cpu
from ptxemu.cli.programs import read_program
from ptxemu.cli.progress import watched
from ptxemu.device.launch_limits import shape_of
from ptxemu.dialects import of_file
from ptxemu.driver.compile import emit_all, emit_ir, front
from ptxemu.driver.lowering import Lowered, Options
from ptxemu.driver.pipeline import Hook, verify_bodies
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.numerics import checked_like
from ptxemu.ir.ops import Module
from ptxemu.process.stages import COMPILE, stage
from ptxemu.text.errors import InputError
from ptxemu.text.files import inside, make_folder, write_bytes
from ptxemu.text.json_text import json_text
from ptxemu.text.symbols import plain_name, symbol_of

SUFFIXES = {"ir": ".ir", "llvm": ".ll", "asm": ".s", "obj": ".o"}


class Code(Struct, frozen=True):
    """Code of some kernels, and what is known of each as JSON data."""

    data: bytes
    kernels: list[dict[str, Any]]
    file: Path | None
    seconds: float


@click.command("compile")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--entry", metavar="NAME", help="The kernel; by default all of them.")
@click.option("--emit", "kind", type=click.Choice(list(SUFFIXES)), default="llvm", show_default=True)
@click.option("--after", metavar="PASS", help="With --emit ir: the pass that made it, such as ssa; by default the last one.")
@click.option("--analysis", "analyses", metavar="NAME", multiple=True, help="With --emit ir: show what an analysis finds.")
@click.option("--verify", is_flag=True, help="Check the typed IR after each pass.")
@click.option("--cpu", metavar="NAME", help="An LLVM CPU name such as x86-64-v3; by default native, this machine's.")
@click.option("--block", default="32", show_default=True, metavar="X[xYxZ]", help="The block to compile for.")
@click.option("--opt", type=click.IntRange(0, 3), default=2, show_default=True, help="Optimization level.")
@click.option("--like", default="", metavar="ARCH", help="Whose results where PTX leaves bits open: sm_89 or exact.")
@click.option("-o", "--output", metavar="FILE|DIR", help="A file, or a folder for one of each kernel; default: stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print what was made as JSON.")
@isolable
def command(
    path: Path,
    entry: str | None,
    kind: str,
    after: str | None,
    analyses: tuple[str, ...],
    verify: bool,
    cpu: str | None,
    block: str,
    opt: int,
    like: str,
    output: str | None,
    as_json: bool,
) -> None:
    """Print kernels as typed IR, LLVM IR, assembly or object code."""
    if kind != "ir" and (after is not None or analyses):
        raise InputError(f"{'--analysis' if analyses else '--after'} is for --emit ir")
    if as_json and kind == "obj" and output is None:
        raise InputError("--json with --emit obj needs -o, as an object is no text")
    source = read_program(path)
    module = front(source.text, source.name, dialect=of_file(source.name).name)
    module.like = checked_like(like)
    names = [function.name for function in module.entries]
    if not names:
        raise InputError(f"{path}: has no kernels")
    chosen = names if entry is None else [symbol_of(entry, names, str(path))]
    options = Options(cpu=checked_cpu(cpu), opt=opt, variant=variant_of(shape_of(1, parse_extent(block, "--block")).block))
    compiler = _Compiler(module, options, kind, after, analyses, verify_bodies if verify else None)
    with watched():
        made = [compiler.code(group, file) for group, file in _files(chosen, output, SUFFIXES[kind])]
    for code in made:
        _write(code, as_json)
    if as_json:
        click.echo(json_text({"emit": kind, "files": [_facts(code) for code in made]}))


class _Compiler(Struct, frozen=True):
    """A module, and what is to be made of its kernels."""

    module: Module
    options: Options
    kind: str
    after: str | None
    analyses: tuple[str, ...]
    hook: Hook | None

    def code(self, names: list[str], file: Path | None) -> Code:
        started = time.perf_counter()
        with stage(COMPILE):
            data, kernels = self._made(names)
        return Code(data, kernels, file, time.perf_counter() - started)

    def _made(self, names: list[str]) -> tuple[bytes, list[dict[str, Any]]]:
        if self.kind == "ir":
            texts = [emit_ir(self.module, name, self.options, self.after, self.analyses, self.hook) for name in names]
            return "\n".join(dict.fromkeys(texts)).encode(), [_named(name, f"@{name}") for name in names]
        made, lowered = emit_all(self.module, names, self.options, self.kind, self.hook)
        data = made if isinstance(made, bytes) else made.encode()
        return data, [_kernel(name, one) for name, one in zip(names, lowered, strict=True)]


def _kernel(name: str, made: Lowered) -> dict[str, Any]:
    return {**_named(name, made.symbol), "static_shared": made.facts.static_shared, "local": made.facts.local_bytes}


def _named(name: str, symbol: str) -> dict[str, Any]:
    return {"name": name, "plain_name": plain_name(name), "symbol": symbol}


def _files(names: list[str], output: str | None, suffix: str) -> Iterable[tuple[list[str], Path | None]]:
    """Which kernels go to which file: a file of its own each, if the output is a folder or is written like one."""
    if output is None or not (output.endswith("/") or Path(output).is_dir()):
        return [(names, None if output is None else Path(output))]
    make_folder(output)
    return [([name], inside(Path(output), f"{name}{suffix}", "-o")) for name in names]


def _write(code: Code, as_json: bool) -> None:
    if code.file is None:
        if not as_json:
            click.echo(code.data, nl=False)
        return
    write_bytes(code.file, code.data)
    if len(code.kernels) > 1 and not as_json:
        for kernel in code.kernels:
            click.echo(f"{code.file}: {kernel['plain_name']} is {kernel['symbol']}")


def _facts(code: Code) -> dict[str, Any]:
    """JSON data; texts that go to no file are among them."""
    facts = {"file": code.file and str(code.file), "bytes": len(code.data), "seconds": code.seconds, "kernels": code.kernels}
    if code.file is None:
        facts["text"] = code.data.decode("utf-8", "replace")
    return facts
