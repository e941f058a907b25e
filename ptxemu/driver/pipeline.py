"""The passes from a checked module to the graphs of one kernel, as one list.

A *hook* is called after each pass with its name: to print what the pass has made, or to check it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct

from ptxemu.analysis.inductions import inductions
from ptxemu.analysis.lone_lanes import lone_code
from ptxemu.analysis.narrowing import narrowing
from ptxemu.analysis.rests import rests
from ptxemu.analysis.spinning import spin_loops
from ptxemu.analysis.spread import may_be_spread
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.analysis.waiting import counting, functions_that_wait, needs_laps
from ptxemu.driver.requirements import require_linked, require_supported
from ptxemu.ir.block_shape import UNKNOWN, is_spread, kind_of
from ptxemu.ir.graph import Graph
from ptxemu.ir.observed import Observed, tells_blanks
from ptxemu.ir.ops import Function, Module
from ptxemu.irtext.printer import Body
from ptxemu.irtext.verifier import verify
from ptxemu.passes.build import build
from ptxemu.passes.copies import propagate
from ptxemu.passes.definedness import watch
from ptxemu.passes.inductions import split
from ptxemu.passes.lane_private import separate
from ptxemu.passes.lone_lanes import single_out
from ptxemu.passes.loops import canonicalize
from ptxemu.passes.narrow import narrow
from ptxemu.passes.params import promote
from ptxemu.passes.rests import go_on
from ptxemu.passes.routines import Routine, routines
from ptxemu.passes.ssa import construct
from ptxemu.text.errors import UnsupportedError
from ptxemu.text.symbols import plain_name

VERIFY_VARIABLE = "PTXEMU_VERIFY"
CLUSTERS_COUNT = "blocksareclusters"
"""The directive of kernels whose grids have more blocks than a launch says, so that code for full warps does not serve."""


class Bodies(Struct):
    """A kernel for one block shape: its own body first, then those of its device functions, with a graph for each.

    ``copied``: functions that must be copied into the kernel, as lanes wait for each other in them.  ``observed``: what the code
    tells the observer of its launches.  ``shapes``: those of each graph, once they have been looked at.
    """

    module: Module
    entry: Function
    variant: str
    observed: Observed = ""
    copied: frozenset[Function] = frozenset()
    routines: list[Routine] = []
    graphs: list[Graph] = []
    shapes: list[Uniformity] = []

    @property
    def listing(self) -> list[Body]:
        """The functions as they can be printed: as lists until there are graphs."""
        if self.graphs:
            return [Body(one.function, graph, graph.variables) for one, graph in zip(self.routines, self.graphs)]
        return [Body(one.function, one.body, one.variables) for one in self.routines]


Hook = Callable[[str, Bodies], None]


class Pass(Struct, frozen=True):
    """One step, which changes ``Bodies`` in place."""

    name: str
    run: Callable[[Bodies], None]

    def apply(self, bodies: Bodies, after: Hook | None) -> None:
        """Run it, and then the hook."""
        self.run(bodies)
        if after is not None:
            after(self.name, bodies)


def _inline(bodies: Bodies) -> None:
    """Expand calls, except those of functions that recurse, are called through an address or are too large to copy."""
    bodies.routines, bodies.graphs = routines(bodies.module, bodies.entry, bodies.copied), []
    for routine in bodies.routines:
        require_supported(bodies.module.source, routine.body)


def _build(bodies: Bodies) -> None:
    """Basic blocks; guards of jumps, calls and waiting instructions become branches."""
    bodies.graphs = [build(routine) for routine in bodies.routines]


def _promote(bodies: Bodies) -> None:
    """Parameters of device functions become registers."""
    for routine, graph in zip(bodies.routines, bodies.graphs):
        promote(graph, routine.function)


def _watch(bodies: Bodies) -> None:
    """Code tells of registers that nobody has written, if it tells of such memory."""
    if tells_blanks(bodies.observed) and bodies.module.dialect == "ptx":
        for graph in bodies.graphs:
            watch(graph)


def _single_out(bodies: Bodies) -> None:
    """What a lane does alone is done once."""
    _reshape(bodies, lambda shapes: single_out(lone_code(shapes), shapes.varies))


def _go_on(bodies: Bodies) -> None:
    """Loops for what unrolled ones have left over make all trips, where lanes have different numbers of them."""
    _reshape(bodies, lambda shapes: go_on(rests(shapes)))


def _split(bodies: Bodies) -> None:
    """Addresses that loops move on become where lanes were before, plus a distance that they share."""
    _reshape(bodies, lambda shapes: split(inductions(shapes)))


def _narrow(bodies: Bodies) -> None:
    """Numbers that 16 bits hold are computed in 16 bits."""
    _reshape(bodies, lambda shapes: narrow(shapes.structure.graph.blocks, narrowing(shapes)))


def _reshape(bodies: Bodies, change: Callable[[Uniformity], bool]) -> None:
    """Look again at the shapes of graphs that a pass changes, whose blocks stay as they are."""
    for number, shapes in enumerate(bodies.shapes):
        if change(shapes):
            known = shapes.structure
            bodies.shapes[number] = Uniformity(known.graph, bodies.variant, corrections=shapes.corrections, structure=known)


def _each(change: Callable[[Graph], None]) -> Callable[[Bodies], None]:
    """A pass that looks at one graph at a time."""

    def run(bodies: Bodies) -> None:
        for graph in bodies.graphs:
            change(graph)

    return run


def verify_bodies(name: str, bodies: Bodies) -> None:
    """A hook: raise InvalidIR if what a pass has left is not well formed."""
    verify(bodies.module, bodies.listing, name)


def _observed(after: Hook | None) -> Hook | None:
    """The hook, with the verifier before it if the environment asks for that."""
    if os.environ.get(VERIFY_VARIABLE) != "1":
        return after

    def both(name: str, bodies: Bodies) -> None:
        verify_bodies(name, bodies)
        if after is not None:
            after(name, bodies)

    return both


TO_SSA = (
    Pass("inline", _inline),
    Pass("cfg", _build),
    Pass("params", _promote),
    Pass("loops", _each(canonicalize)),
    Pass("definedness", _watch),
    Pass("ssa", _each(construct)),
    Pass("copies", _each(propagate)),
)
LANE_PRIVATE = Pass("lane-private", lambda bodies: separate(bodies.graphs[0]))
"""Only for a kernel whose lanes must progress independently."""

LONE_LANES = Pass("lone-lanes", _single_out)
"""Only for others, in code that is not quickly made and tells nobody of what it does."""

RESTS = Pass("rests", _go_on)
INDUCTIONS = Pass("inductions", _split)
NARROW = Pass("narrow", _narrow)
"""For the same code as that."""

BEST = (LONE_LANES, RESTS, INDUCTIONS, NARROW)

PASSES = (*TO_SSA, LANE_PRIVATE, *BEST)


def prepare(module: Module, entry: Function, variant: str, after: Hook | None = None, observed: Observed = "") -> Bodies:
    """The kernel and its functions in SSA form. Raises UnsupportedError.

    Only kernels have the scheme for lanes that wait for each other.  So a function that needs it is copied into them, behind a
    choice where it is called through an address, which means to start again.
    """
    after = _observed(after)
    require_linked(module)
    bodies = Bodies(module, entry, kind_of(variant) if CLUSTERS_COUNT in entry.limits else variant, observed)
    while True:
        for step in TO_SSA:
            step.apply(bodies, after)
        waiting = functions_that_wait(bodies.routines, bodies.graphs, variant)
        if waiting <= bodies.copied:
            break
        bodies.copied |= waiting
    if is_spread(variant) and (observed or not may_be_spread(bodies.graphs)):
        bodies.variant = UNKNOWN
    for function in waiting:
        where = module.source.where(function.pos)
        why = "its lanes must progress independently, and it is recursive or too large to inline"
        raise UnsupportedError(f"{where}: the function '{plain_name(function.name)}' is not supported: {why}")
    return bodies


def analyse(bodies: Bodies, after: Hook | None = None, quickly: bool = False) -> tuple[list[Uniformity], bool]:
    """The shapes of each graph, with its spin loops marked, and whether the kernel's lanes progress independently.

    If they do the graph is rewritten for it.  ``quickly``: code is to be made soon, without corrections (:class:`Uniformity`).
    """
    corrections = not quickly
    bodies.shapes = found = [Uniformity(graph, bodies.variant, corrections=corrections) for graph in bodies.graphs]
    spins = [spin_loops(uniformity.structure) for uniformity in found]
    for graph, loops in zip(bodies.graphs, spins):
        graph.spins = {spin.latch for spin in loops}
    independent = needs_laps(found[0], spins[0], counting(bodies.routines, bodies.graphs))
    if independent:
        LANE_PRIVATE.apply(bodies, _observed(after))
        found[0] = Uniformity(bodies.graphs[0], bodies.variant, independent=True, corrections=corrections)
    elif not quickly and not bodies.observed:
        for step in BEST:
            step.apply(bodies, _observed(after))
    return found, independent
