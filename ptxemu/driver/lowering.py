"""From the graphs of a kernel to LLVM IR: the scheme by which its functions are built, and building them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ptxemu.analysis.brief import is_brief
from ptxemu.analysis.grouped import Grouped
from ptxemu.analysis.rows import along_rows
from ptxemu.analysis.strides import by_grid
from ptxemu.analysis.survivors import Survivors
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.device.code import Facts
from ptxemu.driver import jit
from ptxemu.driver.effort import FIRST_LAUNCH, LONGEST, Cost, cost_of
from ptxemu.driver.pipeline import Bodies, Hook, analyse
from ptxemu.driver.requirements import require_local
from ptxemu.ir.block_shape import is_spread
from ptxemu.ir.distributed import are_ranked
from ptxemu.ir.graph import Graph
from ptxemu.ir.observed import Observed, tells_order, with_copies
from ptxemu.ir.ops import Module, Op, Variable
from ptxemu.lower.core.denormals import all_flush
from ptxemu.lower.core.layout import KernelLayout, ModuleLayout
from ptxemu.lower.core.line_info import LineInfo
from ptxemu.lower.core.llvm_module import Unit
from ptxemu.lower.functions.abreast import AbreastBuilder
from ptxemu.lower.functions.function import build as build_function
from ptxemu.lower.functions.independent import build as build_independent
from ptxemu.lower.functions.looped import LoopedBuilder, survivors_of
from ptxemu.lower.functions.rows import RowsBuilder
from ptxemu.lower.functions.threaded import build as build_threaded
from ptxemu.lower.functions.threaded_independent import build as build_threaded_independent
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


class Options(Struct, frozen=True):
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


class Lowered(Struct, frozen=True):
    """One kernel as LLVM IR, whose symbol stands in a unit, and what a launch must know of it.

    ``cost``: what the best code would cost; ``threaded``: it is not that; ``independent``: it has the scheme for lanes that wait
    for each other.
    """

    unit: Unit
    symbol: str
    facts: Facts
    cost: Cost
    threaded: bool
    independent: bool

    @property
    def final(self) -> bool:
        """Whether no other code is made of it."""
        return not self.threaded or self.cost.best > LONGEST

    @property
    def text(self) -> str:
        """Of the whole unit."""
        return self.unit.text()


class Scheme(Struct, frozen=True):
    """How the functions of a kernel are built, of which it is the first itself.

    ``cost``: of the best code; ``shapes``: the uniformity of each; ``survivors``: what outlives the turns of warps, where one
    call runs all those of a block, and with ``rows`` or ``abreast`` those of several.
    """

    threaded: bool
    independent: bool
    cost: Cost
    shapes: list[Uniformity]
    survivors: Survivors | None
    rows: bool
    abreast: bool


def lower_bodies(
    bodies: Bodies, options: Options, threaded: bool | None = False, after: Hook | None = None, beside: Unit | None = None
) -> Lowered:
    """The passes from SSA form to LLVM IR; ``threaded``: IR that LLVM is soon done with (lower/functions/threaded.py).

    If it is None, the IR is threaded where the best code would take long. ``beside``: the unit of other kernels, of this module
    or another one, which the kernel joins and whose routines it shares. Raises UnsupportedError.
    """
    layouts = _layouts(bodies)
    symbols = _symbols(len(bodies.routines), len(beside.definitions) if beside else 0)
    scheme = _scheme(bodies, options, threaded, after)
    unit = _unit(bodies, options, symbols, scheme, beside)
    for number, symbol in enumerate(symbols):
        _build(bodies, scheme, number, layouts[number], unit, symbol)
    return Lowered(unit, symbols[0], _facts(bodies, scheme, layouts, unit), scheme.cost, scheme.threaded, scheme.independent)


def _layouts(bodies: Bodies) -> list[KernelLayout]:
    """Of each function."""
    module, entry, graphs = bodies.module, bodies.entry, bodies.graphs
    params = {param.variable: param.offset for param in entry.params}
    clustered = bool(CLUSTERS & set(entry.limits))
    kernel = KernelLayout(ModuleLayout(module), _used_variables(module, graphs), params, clustered)
    layouts = [kernel, *(kernel.of_function(graph.variables, graph.incoming) for graph in graphs[1:])]
    for routine, layout in zip(bodies.routines, layouts):
        require_local(module.source, routine.function, layout.local_bytes)
    return layouts


def _used_variables(module: Module, graphs: list[Graph]) -> list[Variable]:
    """The kernel's local variables and all shared ones: of its functions, and the module's, which every kernel may use."""
    entry, *others = graphs
    found = [variable for variable in module.variables.values() if variable.space == "shared"]
    found += entry.variables
    found += [variable for graph in others for variable in graph.variables if variable.space == "shared"]
    return list(dict.fromkeys(found))


def _symbols(count: int, others: int) -> list[str]:
    """The names of a kernel's function and of its device functions, in a unit with so many other definitions."""
    kernel = f"{SYMBOL}.{others}" if others else SYMBOL
    return [kernel, *(f"device.{others + number}" for number in range(1, count))]


def _scheme(bodies: Bodies, options: Options, threaded: bool | None, after: Hook | None) -> Scheme:
    """Threaded if asked for, or if the best code would take too long: for None, longer than a first launch may."""
    graphs, observed = bodies.graphs, options.observed
    cost, longest = cost_of(graphs), FIRST_LAUNCH if threaded is None else LONGEST
    chosen = bool(threaded) or cost.best > longest
    shapes, independent = analyse(bodies, after, quickly=chosen)
    if independent:
        cost = cost_of(graphs)  # there are more blocks now
        if not chosen and cost.best > longest:
            chosen = True
            shapes = [Uniformity(graph, bodies.variant, graph is graphs[0], corrections=False) for graph in graphs]
    if not chosen and observed != "all":
        for uniformity in shapes[1:] if independent else shapes:
            uniformity.grouped = Grouped(uniformity)
    target, together = jit.target_of(options.cpu), tells_order(observed)
    survivors = None if chosen or independent else survivors_of(graphs, shapes[0], target, together)
    alone = survivors is not None and not survivors.block_of
    rows = alone and not together and along_rows(graphs[0], shapes[0])
    abreast = survivors is not None and not observed and _is_abreast(bodies, survivors)
    return Scheme(chosen, independent, cost, shapes, survivors, rows, abreast)


def _is_abreast(bodies: Bodies, survivors: Survivors) -> bool:
    """Whether several blocks profit from having their turns together. They would have one tensor memory."""
    if any("tensors" in op.row.flags for op in _ops(bodies)):
        return False
    return any(by_grid(bodies.graphs[0], loop) for loop in survivors.loops.values())


def _unit(bodies: Bodies, options: Options, symbols: Sequence[str], scheme: Scheme, beside: Unit | None) -> Unit:
    """A new unit, or a copy of the one beside, with the facts of this kernel."""
    module, ops = bodies.module, _ops(bodies)
    copies = any("async" in op.mods for op in ops)
    unit = beside or Unit(jit.target_of(options.cpu), module.numerics, {}, False)
    return replace(
        unit,
        numerics=module.numerics,
        symbols=unit.symbols | {routine.function: symbol for routine, symbol in zip(bodies.routines, symbols)},
        waits=any(op.effects.counts_threads for op in ops),
        observed=with_copies(options.observed) if copies else options.observed,
        daz=unit.target.daz and not scheme.threaded and module.dialect == "ptx" and all_flush(bodies.graphs),
        ranked=are_ranked(ops),
        forgets=not copies and not any("accelerated" in op.row.flags for op in ops),
        lines=LineInfo(module) if options.lines and not scheme.threaded else None,
    )


def _build(bodies: Bodies, scheme: Scheme, number: int, layout: KernelLayout, unit: Unit, symbol: str) -> None:
    """Add a function to the unit."""
    graph, uniformity, function = bodies.graphs[number], scheme.shapes[number], bodies.routines[number].function
    if unit.lines is not None:
        unit.lines.begin(symbol, plain_name(function.name), next(function.ops, None))
    if scheme.survivors is not None and number == 0:
        builder = RowsBuilder if scheme.rows else AbreastBuilder if scheme.abreast else LoopedBuilder
        unit.definitions.append(builder(graph, uniformity, layout, unit, scheme.survivors).run(symbol))
    else:
        BUILDERS[scheme.threaded, scheme.independent and number == 0](graph, uniformity, layout, unit, symbol)


def _facts(bodies: Bodies, scheme: Scheme, layouts: Sequence[KernelLayout], unit: Unit) -> Facts:
    kernel, *others = layouts
    effects = {op.effects for op in _ops(bodies)}
    gives_way = scheme.survivors is not None and bool(scheme.survivors.block_of)
    suspends = gives_way or any(effect.waits for effect in effects)
    takes_stack = any("stack" in effect.implicit.writes for effect in effects)
    return Facts(
        variant=bodies.variant,
        static_shared=kernel.static_shared,
        local_bytes=kernel.local_bytes,
        suspends=suspends,
        looped=scheme.survivors is not None,
        rows=scheme.rows,
        abreast=scheme.abreast,
        spread=is_spread(bodies.variant),
        spins=any(graph.spins for graph in bodies.graphs),
        calls=bool(others),
        daz=unit.daz,
        stacked=takes_stack or any(layout.local_bytes for layout in others),
        brief=scheme.cost.instructions if not suspends and not others and is_brief(bodies.graphs[0]) else 0,
    )


def _ops(bodies: Bodies) -> list[Op]:
    return [op for graph in bodies.graphs for block in graph.blocks for op in block.ops]
