"""From PTX text to object code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import llvmlite

from ptxemu import dialects
from ptxemu.analysis.brief import is_brief
from ptxemu.analysis.grouped import Grouped
from ptxemu.analysis.notes import Subject, notes_of
from ptxemu.analysis.rows import along_rows
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.device.code import Facts, KernelCode
from ptxemu.device.frames import largest_frame
from ptxemu.driver import jit
from ptxemu.driver.effort import FAST, FIRST_LAUNCH, Cost, cost_of, effort_of
from ptxemu.driver.front import check_ptx
from ptxemu.driver.link import link
from ptxemu.driver.pipeline import LANE_PRIVATE, PASSES, Bodies, Hook, analyse, prepare
from ptxemu.driver.requirements import find_entry, require_local
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.distributed import are_ranked
from ptxemu.ir.graph import Graph
from ptxemu.ir.observed import Observed, tells_order
from ptxemu.ir.ops import Function, Module, Variable
from ptxemu.irtext.printer import Body, Notes, print_ir
from ptxemu.irtext.verifier import SSA
from ptxemu.lower.core.denormals import all_flush
from ptxemu.lower.core.layout import KernelLayout, ModuleLayout
from ptxemu.lower.core.line_info import LineInfo
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.core.registry import lowerings
from ptxemu.lower.functions.function import build as build_function
from ptxemu.lower.functions.independent import build as build_independent
from ptxemu.lower.functions.looped import LoopedBuilder, survivors_of
from ptxemu.lower.functions.rows import RowsBuilder
from ptxemu.lower.functions.threaded import build as build_threaded
from ptxemu.lower.functions.threaded_independent import build as build_threaded_independent
from ptxemu.process.gc_pause import collector_paused
from ptxemu.process.stages import CHECK, stage
from ptxemu.text.errors import Diagnostics, InputError, UnsupportedError
from ptxemu.text.source import SourceFile, parts_of
from ptxemu.text.symbols import plain_name

SYMBOL = "kernel"
Tier = Literal["fast", "best"]
BUILDERS = {
    (False, False): build_function,
    (False, True): build_independent,
    (True, False): build_threaded,
    (True, True): build_threaded_independent,
}
"""The schemes of functions: whether they are threaded, and whether lanes progress independently. Kernels have one more, for all
warps of a block."""
CLUSTERS = {"explicitcluster", "reqnctapercluster"}


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile: ``cpu`` an LLVM CPU name or None for this machine, ``opt`` 0 to 3, ``variant`` a block shape.

    ``tier``: ``best`` code, or ``fast``, code that is made fast where the best would take long. ``observed``: which
    accesses to memory the code tells the arena's observer of. ``lines``: best code knows its lines, for other tools.
    """

    cpu: str | None = None
    opt: int = 2
    variant: str = "row"
    tier: Tier = "best"
    observed: Observed = ""
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Lowered:
    """One kernel as LLVM IR, whose symbol stands in a unit, and what a launch must know of it.

    ``cost``: what the best code would cost; ``threaded``: it is not the best; ``independent``: it has the scheme for lanes that
    wait for each other.
    """

    unit: Unit
    symbol: str
    facts: Facts
    cost: Cost
    threaded: bool
    independent: bool

    @property
    def text(self) -> str:
        """Of the whole unit."""
        return self.unit.text()


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


def kernel(module: Module, entry: str, options: Options = Options(), block: tuple[int, int, int] | None = None) -> KernelCode:
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
        KernelCode(code, made.symbol, not made.threaded, replace(made.facts, frame_bytes=frame), llvmlite.__version__)
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


def lower_bodies(
    bodies: Bodies, options: Options, threaded: bool | None = False, after: Hook | None = None, beside: Unit | None = None
) -> Lowered:
    """The passes from SSA form to LLVM IR; ``threaded``: IR that LLVM is soon done with (lower/functions/threaded.py).

    If it is None, the IR is threaded where the best code would take long. ``beside``: the unit of other kernels, of this module
    or another one, which the kernel joins and whose routines it shares.
    """
    module, entry, found, graphs = bodies.module, bodies.entry, bodies.routines, bodies.graphs
    params = {param.variable: param.offset for param in entry.params}
    clustered = bool(CLUSTERS & set(entry.limits))
    layout = KernelLayout(ModuleLayout(module), used_variables(module, graphs), params, clustered)
    others = len(beside.definitions) if beside else 0
    symbols = {routine.function: _symbol(number, others) for number, routine in enumerate(found)}
    effects = {op.effects for graph in graphs for block in graph.blocks for op in block.ops}
    waits = any(effect.counts_threads for effect in effects)
    ranked = are_ranked(op for graph in graphs for block in graph.blocks for op in block.ops)
    unit = beside or Unit(jit.target_of(options.cpu), module.numerics, {}, False)
    unit = replace(
        unit,
        numerics=module.numerics,
        symbols=unit.symbols | symbols,
        waits=waits,
        observed=options.observed,
        daz=False,
        ranked=ranked,
    )
    layouts = [layout, *(layout.of_function(graph.variables, graph.incoming) for graph in graphs[1:])]
    for routine, frame in zip(found, layouts):
        require_local(module.source, routine.function, frame.local_bytes)
    chosen, cost, shapes, independent = _choose(bodies, threaded, after)
    if not chosen and not options.observed:
        for uniformity in shapes[1:] if independent else shapes:
            uniformity.grouped = Grouped(uniformity)
    survivors = None if chosen or independent else survivors_of(graphs, shapes[0])
    alone = survivors is not None and not survivors.block_of
    rows = alone and not tells_order(options.observed) and along_rows(graphs[0], shapes[0])
    unit.daz = unit.target.daz and not chosen and module.dialect == "ptx" and all_flush(graphs)
    unit.lines = LineInfo(module) if options.lines and not chosen else None
    for number, (uniformity, frame, symbol) in enumerate(zip(shapes, layouts, symbols.values())):
        if unit.lines is not None:
            unit.lines.begin(symbol, plain_name(found[number].function.name), next(found[number].function.ops, None))
        if survivors is not None and number == 0:
            builder = (RowsBuilder if rows else LoopedBuilder)(graphs[0], uniformity, frame, unit, survivors)
            unit.definitions.append(builder.run(symbol))
        else:
            BUILDERS[chosen, independent and number == 0](graphs[number], uniformity, frame, unit, symbol)
    suspends = any(effect.waits for effect in effects)
    facts = Facts(
        variant=bodies.variant,
        static_shared=layout.static_shared,
        local_bytes=layout.local_bytes,
        suspends=suspends,
        looped=survivors is not None,
        rows=rows,
        spins=any(graph.spins for graph in graphs),
        calls=len(found) > 1,
        daz=unit.daz,
        stacked=any("stack" in effect.implicit.writes for effect in effects) or any(frame.local_bytes for frame in layouts[1:]),
        brief=not suspends and len(found) == 1 and is_brief(graphs[0]),
    )
    return Lowered(unit, symbols[entry], facts, cost, chosen, independent)


def _symbol(number: int, others: int) -> str:
    """The name of a kernel's function: of the kernel itself, number 0, or of a routine, in a unit with so many other
    definitions."""
    return f"device.{others + number}" if number else f"{SYMBOL}.{others}" if others else SYMBOL


def _choose(bodies: Bodies, threaded: bool | None, after: Hook | None) -> tuple[bool, Cost, list[Uniformity], bool]:
    """Whether the code is threaded; what the best costs; shapes; whether the kernel's lanes progress independently."""
    cost = cost_of(bodies.graphs)
    chosen = cost.best > FIRST_LAUNCH if threaded is None else threaded
    shapes, independent = analyse(bodies, after, corrections=not chosen)
    if independent:
        cost = cost_of(bodies.graphs)  # there are more blocks now
        if threaded is None and not chosen and cost.best > FIRST_LAUNCH:
            chosen = True
            shapes = [Uniformity(graph, bodies.variant, graph is bodies.graphs[0], corrections=False) for graph in bodies.graphs]
    return chosen, cost, shapes, independent


def used_variables(module: Module, graphs: list[Graph]) -> list[Variable]:
    """The kernel's local variables and all shared ones: of its functions, and the module's, which every kernel may use."""
    entry, *others = graphs
    found = [variable for variable in module.variables.values() if variable.space == "shared"]
    found += entry.variables
    found += [variable for graph in others for variable in graph.variables if variable.space == "shared"]
    return list(dict.fromkeys(found))


lowerings()  # all of them register
