"""``ptxemu compile``: look at the code of a kernel."""

from __future__ import annotations

from pathlib import Path

import click

from ptxemu.cli.isolation import isolable
from ptxemu.cli.processors import checked_cpu
from ptxemu.cli.programs import read_program
from ptxemu.cli.values import parse_extent
from ptxemu.device.launch_limits import shape_of
from ptxemu.dialects import of_file
from ptxemu.driver.compile import Options, emit, emit_ir, front
from ptxemu.driver.pipeline import verify_bodies
from ptxemu.ir.block_shape import variant_of
from ptxemu.text.errors import InputError
from ptxemu.text.files import reason
from ptxemu.text.symbols import the_symbol


@click.command("compile")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--entry", metavar="NAME", help="The kernel; needed if the file has several.")
@click.option("--emit", "kind", type=click.Choice(["ir", "llvm", "asm", "obj"]), default="llvm", show_default=True)
@click.option("--after", metavar="PASS", help="With --emit ir: the pass that made it, such as ssa; by default the last one.")
@click.option("--analysis", "analyses", metavar="NAME", multiple=True, help="With --emit ir: show what an analysis finds.")
@click.option("--verify", is_flag=True, help="Check the typed IR after each pass.")
@click.option("--cpu", metavar="NAME", help="An LLVM CPU name such as x86-64-v3; by default native, this machine's.")
@click.option("--block", default="32", show_default=True, metavar="X[xYxZ]", help="The block to compile for.")
@click.option("--opt", type=click.IntRange(0, 3), default=2, show_default=True, help="Optimization level.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file to write; stdout by default.")
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
    output: Path | None,
) -> None:
    """Print a kernel as typed IR, LLVM IR, assembly or object code."""
    if kind != "ir" and (after is not None or analyses):
        raise InputError(f"{'--analysis' if analyses else '--after'} is for --emit ir")
    source = read_program(path)
    module = front(source.text, source.name, dialect=of_file(source.name).name)
    name = the_symbol(entry, (function.name for function in module.entries), str(path))
    shape = shape_of(1, parse_extent(block, "--block"))
    options = Options(cpu=checked_cpu(cpu), opt=opt, variant=variant_of(shape.block))
    hook = verify_bodies if verify else None
    made = emit_ir(module, name, options, after, analyses, hook) if kind == "ir" else emit(module, name, options, kind, hook)
    data = made if isinstance(made, bytes) else made.encode()
    if output is None:
        click.echo(data, nl=False)
        return
    try:
        output.write_bytes(data)
    except (OSError, ValueError) as error:
        raise InputError(f"{output}: {reason(error)}") from None
