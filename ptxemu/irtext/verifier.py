"""Checks that the typed IR is well formed, after any pass.

The rules are in :mod:`ptxemu.irtext.op_rules` and :mod:`ptxemu.irtext.graph_rules` (docs/ir.md lists them).  IR that breaks one
is a bug of the pass before, or of the checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from ptxemu.ir.graph import Graph
from ptxemu.ir.ops import Function, LabelMark, Module, Op, Variable
from ptxemu.irtext.graph_rules import graph_problems
from ptxemu.irtext.op_rules import Surroundings, op_problems
from ptxemu.irtext.printer import Body, print_op
from ptxemu.irtext.problems import Problem

SSA = frozenset({"ssa", "copies", "lane-private", "lone-lanes", "rests", "inductions", "narrow"})
CANONICAL = frozenset({"loops", "definedness", "ssa", "copies"})
"""Passes after which the graphs are in SSA form, and those after which loops have their canonical form."""


class InvalidIR(AssertionError):
    """IR that is not well formed; the message names the pass, the function, the block, the line and the rule."""


def verify(module: Module, bodies: Iterable[Body], after: str) -> None:
    """Raise InvalidIR for the first rule that functions break as the pass ``after`` has left them."""
    for body in bodies:
        for problem in _problems(module, body, after):
            raise InvalidIR(_message(module, body.function, after, problem))


def _problems(module: Module, body: Body, after: str) -> Iterator[Problem]:
    around = Surroundings(module, frozenset(_variables(body)), after in SSA, isinstance(body.code, Graph))
    if isinstance(body.code, Graph):
        for block in body.code.blocks:
            for op in block.ops:
                for problem in op_problems(around, op):
                    yield problem.inside(block.name)
        yield from graph_problems(body.code, after in SSA, after in CANONICAL)
    else:
        yield from _list_problems(around, body.code)


def _list_problems(around: Surroundings, items: list[Op | LabelMark]) -> Iterator[Problem]:
    names = Counter(item.name for item in items if isinstance(item, LabelMark))
    for item in items:
        if isinstance(item, LabelMark):
            if names[item.name] > 1:
                yield Problem(f"the label '{item.name}' stands twice", item.pos)
            continue
        for label in item.labels:
            if label not in names:
                yield Problem(f"there is no label '{label}'", item.pos, item)
        yield from op_problems(around, item)


def _variables(body: Body) -> Iterator[Variable]:
    """The variables of its own that a function may mention."""
    yield from body.variables
    yield from (param.variable for param in body.function.params)
    yield from body.function.returns
    if isinstance(body.code, Graph):
        yield from body.code.incoming


def _message(module: Module, function: Function, after: str, problem: Problem) -> str:
    block = f", block '{problem.block}'" if problem.block else ""
    where = f", {module.source.where(problem.pos)}" if problem.pos else ""
    op = f"\n  {print_op(module, problem.op)}" if problem.op is not None else ""
    return f"after pass '{after}': function '{function.name}'{block}{where}: {problem.text}{op}"
