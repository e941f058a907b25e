"""The results of analyses as notes of the printed IR (:mod:`ptxemu.irtext.printer`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from ptxemu.analysis.lifetimes import Lifetimes
from ptxemu.analysis.linear import Structure
from ptxemu.analysis.masks import representatives
from ptxemu.analysis.nans import raw_values
from ptxemu.analysis.parameters import uses_of
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.spinning import spin_loops
from ptxemu.analysis.streams import streams
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.analysis.waiting import needs_laps
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block, Graph
from ptxemu.ir.ops import Function, Reg
from ptxemu.irtext.printer import Notes
from ptxemu.passes.ssa import live_in
from ptxemu.text.errors import InputError


class Subject(Struct, frozen=True):
    """The graph of a function, to analyse for a block shape; ``ssa`` and ``independent`` tell which scheme it is for."""

    function: Function
    graph: Graph
    variant: str
    ssa: bool
    independent: bool

    def uniformity(self) -> Uniformity:
        return Uniformity(self.graph, self.variant, self.independent)


def _listed(names: Iterable[str]) -> str:
    return "{" + ", ".join(sorted(names)) + "}"


class Liveness(Notes):
    """The registers that are live where a block begins."""

    def __init__(self, subject: Subject) -> None:
        self.live = live_in(subject.graph)

    def of_block(self, block: Block) -> Iterable[str]:
        yield "live " + _listed(reg.name for reg in self.live[block])


class Dominators(Notes):
    """The immediate dominator of each block, and the header of the innermost loop that it is in."""

    def __init__(self, subject: Subject) -> None:
        self.structure = Structure(subject.graph)

    def of_block(self, block: Block) -> Iterable[str]:
        dominance = self.structure.dominance
        above = dominance.order[dominance.idom[dominance.number[block]]]
        if above is not block:
            yield f"idom {above.name}"
        if (loop := self.structure.loops.get(block)) is not None:
            yield f"loop {loop.header.name}"


class Order(Notes):
    """The place of each block in linearized code, and the dominator that always runs with the same lanes."""

    def __init__(self, subject: Subject) -> None:
        self.structure = Structure(subject.graph)

    def of_block(self, block: Block) -> Iterable[str]:
        yield f"order {self.structure.index[block]}"
        if (same := self.structure.equivalent(block)) is not None:
            yield f"lanes of {same.name}"


class Shapes(Notes):
    """How each value varies over the lanes of a warp, and which branches diverge."""

    def __init__(self, subject: Subject) -> None:
        self.found = subject.uniformity()

    def of_block(self, block: Block) -> Iterable[str]:
        if block in self.found.linear.divergent:
            yield "diverges"

    def of_value(self, reg: Reg) -> Iterable[str]:
        yield shape_text(self.found.shape(reg))


def shape_text(shape: Shape | None) -> str:
    """A shape in words: ``uniform``, ``lane * 4``, ``varying`` or its offsets.

    ``+ 8 wraps``: less or more by 8 * 2**32 in lanes that wrap where a value is widened, which is tested at run time.
    """
    if shape is None:
        return "varying"
    step = shape.offsets[1]
    if not any(shape.offsets):
        text = "uniform"
    elif shape.offsets == tuple(lane * step for lane in range(LANES)):
        text = "lane" if step == 1 else f"lane * {step}"
    else:
        text = f"offsets {' '.join(map(str, shape.offsets))}"
    if shape.widenings:
        text += f" + {' + '.join(str(factor) for _, factor in shape.widenings)} wraps"
    return text + (f" up to {shape.high}" if shape.high is not None else "")


class Pending(Notes):
    """The blocks in which lanes may wait when control enters a block; those entered through a test of their mask."""

    def __init__(self, subject: Subject) -> None:
        self.linear = subject.uniformity().linear

    def of_block(self, block: Block) -> Iterable[str]:
        yield "pending " + _listed(waiting.name for waiting in self.linear.pending(block))
        if block in self.linear.tested:
            yield "tested"


class Masks(Notes):
    """The block whose mask a block shares."""

    def __init__(self, subject: Subject) -> None:
        self.found = representatives(subject.uniformity().linear)

    def of_block(self, block: Block) -> Iterable[str]:
        same = self.found[block]
        yield "mask of its own" if same is block else f"mask of {same.name}"


class Spins(Notes):
    """Loops that wait for other threads, with what they poll; whether lanes of a warp must progress independently."""

    def __init__(self, subject: Subject) -> None:
        uniformity = subject.uniformity()
        self.loops = {spin.loop.header: spin for spin in spin_loops(uniformity.structure)}
        self.laps = needs_laps(uniformity, list(self.loops.values()), set())

    def of_graph(self) -> Iterable[str]:
        yield "lanes progress independently" if self.laps else "lanes progress together"

    def of_block(self, block: Block) -> Iterable[str]:
        if block in self.loops:
            yield f"spin loop, polls {_listed(self.loops[block].spaces)}"


class Streams(Notes):
    """Loops that each lane can run by itself, with where they lead to."""

    def __init__(self, subject: Subject) -> None:
        self.found = {stream.header: stream for stream in streams(subject.graph, subject.uniformity())}

    def of_block(self, block: Block) -> Iterable[str]:
        if block in self.found:
            stream = self.found[block]
            left = "" if stream.parting else ", left together"
            yield f"stream to {stream.exit.name}, gathers: {len(stream.gathers)}{left}"


class LifetimeNotes(Notes):
    """The first and the last position in linearized code at which a value must be kept."""

    def __init__(self, subject: Subject) -> None:
        self.found = Lifetimes(Structure(subject.graph))

    def of_value(self, reg: Reg) -> Iterable[str]:
        life = self.found.of[reg]
        yield f"live {life.first} to {life.last}"


class RawNans(Notes):
    """Values that may hold a NaN that is not canonical."""

    def __init__(self, subject: Subject) -> None:
        self.raw = raw_values(subject.graph)

    def of_value(self, reg: Reg) -> Iterable[str]:
        if reg in self.raw:
            yield "raw nan"


class Uses(Notes):
    """What parameters stand for."""

    def __init__(self, subject: Subject) -> None:
        blocks, parameters = subject.graph.blocks, subject.function.params
        ops = [op for block in blocks for op in block.ops]
        copies = [(dst, value) for block in blocks for dst, args in block.phis.rows() for value in args]
        self.found = uses_of(ops, [param.variable for param in parameters], copies)

    def of_graph(self) -> Iterable[str]:
        for (variable, offset), use in self.found.items():
            place = f"@{variable.name}" + (f" + {offset}" if offset else "")
            yield f"{place}: {use}{', as numbers' if use.numeric else ''}"


GRAPHS: dict[str, Callable[[Subject], Notes]] = {
    "dominators": Dominators, "liveness": Liveness, "order": Order, "uses": Uses,
}  # fmt: skip
"""Analyses of any graph."""

SSA_FORM: dict[str, Callable[[Subject], Notes]] = {
    "lifetimes": LifetimeNotes, "masks": Masks, "nans": RawNans, "pending": Pending, "shapes": Shapes, "spins": Spins,
    "streams": Streams,
}  # fmt: skip
"""Analyses of graphs in SSA form."""


def notes_of(subject: Subject, names: Iterable[str]) -> Sequence[Notes]:
    """The notes of some analyses. Raises InputError for a name that does not exist, or one that needs SSA form."""
    return [_chosen(subject, name)(subject) for name in names]


def _chosen(subject: Subject, name: str) -> Callable[[Subject], Notes]:
    if name in SSA_FORM and not subject.ssa:
        raise InputError(f"the analysis '{name}' needs SSA form")
    found = GRAPHS.get(name) or SSA_FORM.get(name)
    if found is None:
        raise InputError(f"there is no analysis '{name}'; there are {', '.join(sorted(GRAPHS | SSA_FORM))}")
    return found
