"""From PTX text to object code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import llvmlite
from msgspec.structs import replace

from ptxemu import dialects
from ptxemu.analysis.notes import Subject, notes_of
from ptxemu.device.code import KernelCode
from ptxemu.device.frames import largest_frame
from ptxemu.driver import jit
from ptxemu.driver.effort import FAST, effort_of
from ptxemu.driver.front import check_ptx
from ptxemu.driver.link import link
from ptxemu.driver.lowering import Lowered, Options, lower_bodies
from ptxemu.driver.pipeline import LANE_PRIVATE, PASSES, Bodies, Hook, analyse, prepare
from ptxemu.driver.requirements import find_entry
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Function, Module
from ptxemu.irtext.printer import Body, Notes, print_ir
from ptxemu.irtext.verifier import SSA
from ptxemu.lower.core.registry import lowerings
from ptxemu.process.gc_pause import collector_paused
from ptxemu.process.stages import CHECK, stage
from ptxemu.text.errors import Diagnostics, InputError, UnsupportedError
from ptxemu.text.source import SourceFile, parts_of

DEFAULTS = Options()


def front(
    text: str,
    filename: str = "<string>",
    strict: bool = False,
    dialect: str = "ptx",
    options: Mapping[str, str] = MappingProxyType({}),
    alone: bool = True,
) -> Module:
    """Parse and check a program of PTX or of a dialect, or, if it is not ``alone``, one file of it.

    Raises PtxError with every diagnostic.
    """
    source = SourceFile(filename, text)
    diagnostics = Diagnostics(source, strict, alone)
    with collector_paused():
        if dialect != "ptx":
            with stage(CHECK):
                module = dialects.front(dialect, source, diagnostics, strict, dialects.find(dialect).check_options(options))
            diagnostics.raise_errors()
            return module
        try:
            module = check_ptx(source, diagnostics)
        except UnsupportedError:
            diagnostics.raise_errors()
            raise
        diagnostics.raise_errors()
    return module


def front_of(
    source: SourceFile, strict: bool, dialect: str, options: Mapping[str, str] = MappingProxyType({}), like: str = ""
) -> Module:
    """The same for a source that may be several files, which are linked. ``like``: what they compute where PTX leaves it open."""
    parts = parts_of(source)
    modules = [front(part.text, part.name, strict, dialect, options, alone=len(parts) == 1) for part in parts]
    module = modules[0] if len(parts) == 1 else link(modules)
    module.like = like
    return module


def kernel(module: Module, entry: str, options: Options = DEFAULTS, block: tuple[int, int, int] | None = None) -> KernelCode:
    """Compile one entry; ``block`` picks the variant, else ``options.variant``. Raises UnsupportedError."""
    with collector_paused(lives_on=False):
        variant = variant_of(block) if block else options.variant
        bodies = prepare(module, find_entry(module, entry), variant, observed=options.observed)
        made = lower_bodies(bodies, options, threaded=None if options.tier == "fast" else False)
        effort = FAST if made.threaded else effort_of([made.cost], options.opt)
        return assemble([made], options.cpu, effort)[0]


def assemble(kernels: Sequence[Lowered], cpu: str | None, effort: jit.Effort) -> list[KernelCode]:
    """The code of kernels that share a unit: one object with them all. The last of them was the last to join the unit."""
    code = jit.compile_object(kernels[-1].text, cpu, effort)
    frame = largest_frame(code)
    return [
        KernelCode(code, made.symbol, made.final, replace(made.facts, frame_bytes=frame), llvmlite.__version__)
        for made in kernels
    ]


def emit(module: Module, entry: str, options: Options, kind: str, hook: Hook | None = None) -> str | bytes:
    """The best code of a kernel as optimized ``llvm`` IR, ``asm`` or ``obj``; ``hook`` sees the IR after each pass."""
    return emit_all(module, [entry], options, kind, hook)[0]


def emit_all(
    module: Module, entries: Sequence[str], options: Options, kind: str, hook: Hook | None = None
) -> tuple[str | bytes, list[Lowered]]:
    """The same of several kernels together, and what is known of each."""
    made: list[Lowered] = []
    for entry in entries:
        bodies = prepare(module, find_entry(module, entry), options.variant, hook, options.observed)
        made.append(lower_bodies(bodies, options, after=hook, beside=made[-1].unit if made else None))
    text, effort = made[-1].text, effort_of([one.cost for one in made], options.opt)
    if kind == "llvm":
        return jit.optimized(text, options.cpu, effort), made
    if kind == "asm":
        return jit.compile_assembly(text, options.cpu, effort), made
    return jit.compile_object(text, options.cpu, effort), made


def emit_ir(
    module: Module,
    entry: str,
    options: Options,
    after: str | None = None,
    analyses: Sequence[str] = (),
    hook: Hook | None = None,
) -> str:
    """The typed IR of a kernel as text: what is lowered, or what the pass ``after`` leaves, or ``check``.

    The results of ``analyses`` are notes on its lines.  Raises InputError for the name of a pass or an analysis that does not
    exist, and for an analysis that needs code of another scheme.
    """
    function = find_entry(module, entry)
    names = ["check", *(step.name for step in PASSES)]
    if after is not None and after not in names:
        raise InputError(f"there is no pass '{after}'; there are {', '.join(names)}")
    if after in names[:2] and analyses:
        raise InputError(f"the analysis '{analyses[0]}' needs blocks")
    if after == "check":
        return print_ir(module, [Body(f, f.body, f.variables) for f in module.functions.values() if f.body is not None])
    texts: dict[str, str] = {}

    def shown(bodies: Bodies, ssa: bool, independent: bool) -> str:
        def annotate(graph: Graph) -> Sequence[Notes]:
            owner = next(body.function for body in bodies.listing if body.code is graph)
            return notes_of(Subject(owner, graph, options.variant, ssa, independent and graph is bodies.graphs[0]), analyses)

        return print_ir(module, bodies.listing, annotate)

    def keep(name: str, bodies: Bodies) -> None:
        if name == after:
            texts[name] = shown(bodies, name in SSA, name == LANE_PRIVATE.name)
        if hook is not None:
            hook(name, bodies)

    bodies = prepare(module, function, options.variant, keep, options.observed)
    _, independent = analyse(bodies, keep)
    return texts.get(after or "") or shown(bodies, True, independent)


def lower(module: Module, entry: Function, variant: str, options: Options) -> Lowered:
    """The passes from checked IR to LLVM IR text."""
    return lower_bodies(prepare(module, entry, variant, observed=options.observed), options)


lowerings()  # all of them register
