"""The pipeline: PTX text to object code, as one readable list of passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ptxemu import dialects, isa, jit
from ptxemu.analysis.branches import branches_meet
from ptxemu.analysis.linear import Layout
from ptxemu.analysis.meeting import parts_meet
from ptxemu.analysis.spinning import SpinLoop, needs_independence, spin_loops
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.collector import collector_paused
from ptxemu.diagnose import check_ptx
from ptxemu.errors import Diagnostics, InputError, UnsupportedError
from ptxemu.ir import Function, LabelMark, Module, Op, Reg, Variable
from ptxemu.layout import KernelLayout, ModuleLayout
from ptxemu.lower.calls import is_runtime_call
from ptxemu.lower.function import build as build_function
from ptxemu.lower.independent import build as build_independent
from ptxemu.lower.registry import lowerings
from ptxemu.lower.unit import Unit
from ptxemu.passes.build import build as build_graph
from ptxemu.passes.copies import propagate
from ptxemu.passes.graph import Graph
from ptxemu.passes.loops import canonicalize
from ptxemu.passes.meetings import counts_threads, meets
from ptxemu.passes.params import promote
from ptxemu.passes.routines import Routine, routines
from ptxemu.passes.separate import separate
from ptxemu.passes.ssa import construct
from ptxemu.source import SourceFile
from ptxemu.variant import variant_of

SYMBOL = "kernel"
CLUSTERS = {"explicitcluster", "reqnctapercluster"}


@dataclass(frozen=True, slots=True)
class Options:
    """How to compile: ``cpu`` an LLVM CPU name or None for this machine, ``opt`` 0 to 3, ``variant`` a block shape."""

    cpu: str | None = None
    opt: int = 2
    check: frozenset[str] = field(default_factory=frozenset)
    variant: str = "row"


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """Object code of one kernel and what a launch must know of it. Sizes are in bytes.

    ``calls``: it makes real calls; ``stacked``: beyond ``local_bytes`` it takes local memory as it goes.
    """

    object: bytes
    symbol: str
    static_shared: int
    local_bytes: int
    suspends: bool
    spins: bool
    param_bytes: int
    variant: str
    calls: bool
    stacked: bool


@dataclass(frozen=True, slots=True)
class Lowered:
    """LLVM IR text of one kernel and what it needs: ``calls`` real functions, ``stacked`` a stack in local memory."""

    text: str
    layout: KernelLayout
    suspends: bool
    spins: bool
    calls: bool
    stacked: bool


def front(
    text: str,
    filename: str = "<string>",
    strict: bool = False,
    dialect: str = "ptx",
    options: Mapping[str, str] = MappingProxyType({}),
) -> Module:
    """Parse and check a program of PTX or of a dialect. Raises PtxError with every diagnostic."""
    source = SourceFile(filename, text)
    diagnostics = Diagnostics(source, strict)
    with collector_paused():
        if dialect != "ptx":
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


def kernel(module: Module, entry: str, options: Options = Options(), block: tuple[int, int, int] | None = None) -> CompiledKernel:
    """Compile one entry; ``block`` picks the variant, else ``options.variant``. Raises UnsupportedError."""
    variant = variant_of(block) if block else options.variant
    function = find_entry(module, entry)
    made = lower(module, function, variant, options)
    return CompiledKernel(
        jit.compile_object(made.text, options.cpu, options.opt),
        SYMBOL,
        made.layout.static_shared,
        made.layout.local_bytes,
        made.suspends,
        made.spins,
        function.param_bytes,
        variant,
        made.calls,
        made.stacked,
    )


def emit(module: Module, entry: str, options: Options, kind: str) -> str | bytes:
    """The kernel as optimized ``llvm`` IR, ``asm`` or ``obj``."""
    text = lower(module, find_entry(module, entry), options.variant, options).text
    if kind == "llvm":
        return str(jit.optimize(text, options.cpu, options.opt))
    if kind == "asm":
        return jit.compile_assembly(text, options.cpu, options.opt)
    return jit.compile_object(text, options.cpu, options.opt)


def find_entry(module: Module, name: str) -> Function:
    function = module.functions.get(name)
    if function is None or function.kind != "entry" or function.body is None:
        raise InputError(f"no kernel named '{name}' in {module.source.name}")
    return function


def lower(module: Module, entry: Function, variant: str, options: Options) -> Lowered:
    """The passes from checked IR to LLVM IR text."""
    require_one_cta(module.source, entry)
    found, graphs = bodies(module, entry, variant)
    params = {param.variable: param.offset for param in entry.params}
    clustered = bool(CLUSTERS & set(entry.limits))
    layout = KernelLayout(ModuleLayout(module), used_variables(module, graphs), params, clustered)
    symbols = {routine.function: f"device.{number}" if number else SYMBOL for number, routine in enumerate(found)}
    flags = {flag for graph in graphs for block in graph.blocks for op in block.ops for flag in op.row.flags}
    unit = Unit(jit.target_of(options.cpu), symbols, "exits" in flags)
    bars = counting(found, graphs)
    layouts = [layout, *(layout.of_function(graph.variables) for graph in graphs[1:])]
    for graph, frame, symbol in zip(graphs, layouts, symbols.values()):
        uniformity = Uniformity(graph, variant)
        spins = spin_loops(uniformity.layout)
        graph.spins = {spin.latch for spin in spins}
        if not frame.framed and needs_laps(uniformity, spins, bars):
            separate(graph)
            build_independent(graph, Uniformity(graph, variant, independent=True), frame, unit, symbol)
        else:
            build_function(graph, uniformity, frame, unit, symbol)
    calls = len(found) > 1
    stacked = "writes_stack" in flags or any(frame.local_bytes for frame in layouts[1:])
    return Lowered(unit.text(), layout, "suspends" in flags, any(graph.spins for graph in graphs), calls, stacked)


def bodies(module: Module, entry: Function, variant: str) -> tuple[list[Routine], list[Graph]]:
    """The kernel and its functions. Only kernels have the form for lanes that wait for each other, so that a function which
    needs it is copied into them, behind a choice where it is called through an address."""
    chosen: frozenset[Function] = frozenset()
    while True:
        found = routines(module, entry, chosen)
        for routine in found:
            require_supported(module.source, routine.body)
        graphs = [to_graph(routine) for routine in found]
        waiting = functions_that_wait(found, graphs, variant)
        if waiting <= chosen:
            break
        chosen |= waiting
    for function in waiting:
        where = f"{module.source.name}:{module.source.line(function.pos)}"
        what = f"the function '{function.name}', in which lanes of a warp wait for each other and which is too large or recurses,"
        raise UnsupportedError(f"{where}: {what} is not supported")
    return found, graphs


def functions_that_wait(found: list[Routine], graphs: list[Graph], variant: str) -> set[Function]:
    """Functions that cannot be compiled as such: lanes wait for each other in them, or would if others come later."""
    functions = {routine.function: graph for routine, graph in zip(found[1:], graphs[1:])}
    bars = counting(found, graphs)
    waiting = {function for function, graph in functions.items() if makes_lanes_wait(graph, variant, bars)}
    indirect = [
        op.call for g in graphs for b in g.blocks for op in b.ops if op.call is not None and isinstance(op.call.callee, Reg)
    ]
    waiting |= {target for call in indirect for target in call.targets or () if target in bars}  # lanes may call different ones
    meeting = {function for function, graph in functions.items() if any(meets(op) for block in graph.blocks for op in block.ops)}
    if meeting - waiting and makes_lanes_wait(graphs[0], variant, bars):
        waiting |= meeting
    return waiting


def counting(found: list[Routine], graphs: list[Graph]) -> set[Function]:
    """The functions that come to a barrier that counts threads."""
    ops = {routine.function: [op for block in graph.blocks for op in block.ops] for routine, graph in zip(found[1:], graphs[1:])}
    bars = {function for function in ops if any(map(counts_threads, ops[function]))}
    changed = bool(bars)
    while changed:
        more = {f for f in ops for op in ops[f] if op.call is not None and bars.intersection(op.call.targets or ())}
        changed = not more <= bars
        bars |= more
    return bars


def makes_lanes_wait(graph: Graph, variant: str, bars: set[Function]) -> bool:
    """Whether the lanes of a warp must progress independently."""
    waits = bars or any(meets(op) for block in graph.blocks for op in block.ops)
    if not waits and not spin_loops(Layout(graph)):
        return False
    uniformity = Uniformity(graph, variant)
    return needs_laps(uniformity, spin_loops(uniformity.layout), bars)


def needs_laps(uniformity: Uniformity, spins: list[SpinLoop], bars: set[Function]) -> bool:
    """Whether lanes wait for others of their warp that would wait for them."""
    linear = uniformity.linear
    return needs_independence(linear, spins) or parts_meet(linear, bars) or branches_meet(linear)


def to_graph(routine: Routine) -> Graph:
    """A body as a graph in SSA form."""
    graph = build_graph(routine)
    promote(graph, routine.function)
    canonicalize(graph)
    construct(graph)
    propagate(graph)
    return graph


def used_variables(module: Module, graphs: list[Graph]) -> list[Variable]:
    """The kernel's local variables and all shared ones: of its functions, and the module's, which every kernel may use."""
    entry, *others = graphs
    found = [variable for variable in module.variables.values() if variable.space == "shared"]
    found += entry.variables
    found += [variable for graph in others for variable in graph.variables if variable.space == "shared"]
    return list(dict.fromkeys(found))


def require_one_cta(source: SourceFile, entry: Function) -> None:
    """Refuse a kernel that must run in clusters of several CTAs."""
    shape = entry.limits.get("reqnctapercluster", ())
    if any(extent > 1 for extent in shape):
        size = " x ".join(map(str, shape))
        raise UnsupportedError(f"{source.name}:{source.line(entry.pos)}: a cluster of {size} CTAs is not supported")


def require_supported(source: SourceFile, body: list[Op | LabelMark]) -> None:
    """Refuse the first instruction that cannot be run; nothing is ever skipped."""
    for item in body:
        if not isinstance(item, Op):
            continue
        what = None
        if not item.row.supported:
            what = f"instruction '{written(source, item)}'"
        elif item.call is not None and not item.call.real and not is_runtime_call(item.call):
            assert isinstance(item.call.callee, Function)
            what = f"call of external function '{item.call.callee.name}'"
        if what is not None:
            raise UnsupportedError(f"{source.name}:{source.line(item.pos)}: {what} is not supported")


def written(source: SourceFile, op: Op) -> str:
    """The opcode with its modifiers as the source has it."""
    text = source.text[op.pos : op.end]
    words = text.split(None, 2)
    return (words[1] if words and words[0].startswith("@") and len(words) > 1 else words[0]).rstrip(";")


isa.verify(lowerings())
