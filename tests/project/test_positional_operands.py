"""Lowerings, passes and analyses name operands as the rows do: positions are for code that treats all operands alike.

Counted are subscripts of ``srcs``, ``dsts``, ``src_types`` and ``negs`` outside ``ir/``, ``irtext/`` and the table.
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache

from tests.support.places import PACKAGE

ROOMS = {"ir", "irtext", "isa"}
LISTS = {"srcs", "dsts", "src_types", "negs"}

MOST = 16
ALLOWED = {
    "analysis/nans.py": (1, "the only result of any elementwise instruction"),
    "interpreter/elementwise.py": (1, "reads the sources of any elementwise instruction"),
    "lower/control/warp.py": (1, "writes one of its results for two callers"),
    "lower/core/context.py": (2, "writes the results of any instruction"),
    "lower/core/emit.py": (1, "the type of a source of any elementwise instruction"),
    "lower/functions/one_op.py": (2, "reads the sources of any elementwise instruction; any widening"),
    "passes/marshal.py": (1, "replaces the last source"),
    "passes/params.py": (1, "replaces the first source"),
}
"""How often positions are used, and why."""


def positions(tree: ast.Module) -> int:
    return sum(
        isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr in LISTS
        for node in ast.walk(tree)
    )


@cache
def found() -> Counter[str]:
    places = {path.relative_to(PACKAGE): path for path in sorted(PACKAGE.rglob("*.py"))}
    texts = {place.as_posix(): path for place, path in places.items() if place.parts[0] not in ROOMS}
    return Counter({place: positions(ast.parse(path.read_text(encoding="utf-8"))) for place, path in texts.items()})


def test_operands_have_names() -> None:
    counts = found()
    assert {place: count for place, count in counts.items() if count > ALLOWED.get(place, (0, ""))[0]} == {}


def test_no_exception_is_kept_without_need() -> None:
    counts = found()
    assert {place: counts[place] for place, (count, _) in ALLOWED.items() if counts[place] < count} == {}


def test_few_positions_are_used() -> None:
    assert sum(count for count, _ in ALLOWED.values()) <= MOST
    assert all(reason for _, reason in ALLOWED.values())


def test_the_counter_sees_positions() -> None:
    assert positions(ast.parse('a = op.srcs[0], op.dsts[1:], op.negs[-1], op["a"], list(op.srcs), srcs[0], op.labels[0]')) == 3
