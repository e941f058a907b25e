"""Templates: a statement that was read once becomes a function that builds any other of the same skeleton.

The *skeleton* of a statement is its text with every leaf (name or number) replaced by its kind.  All texts of one skeleton
parse alike, so the tree of the first serves as a template: the same nodes, with texts, values and positions taken from
the leaves.  As :mod:`dataclasses` does, the function is written as Python source, for speed; leaf texts never enter it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar, get_args

from msgspec import Struct

from ptxemu.syntax import ast
from ptxemu.syntax.declarations import EXPLICIT_ZERO
from ptxemu.syntax.literals import float_bits, integer_value

Builder = Callable[[list[str], list[int], list[int], int, int], ast.Instruction | ast.Variable]
"""``build(texts, starts, ends, first, loc)``: the node whose leaves begin at index ``first`` of the three lists."""


T = TypeVar("T")
_SIGNS = {"": "", "-": "-", "+": "", "+-": "-"}
_COMPUTED = re.compile(r"[-+~!(*]")


class _Memo(dict[str, T]):
    """What leaf texts mean. Bounded: a module may hold any number of them."""

    def __init__(self, convert: Callable[[str], T]) -> None:
        self._convert = convert

    def __missing__(self, text: str) -> T:
        value = self._convert(text)
        if len(self) < 10_000:
            self[text] = value
        return value


_NAMESPACE: dict[str, object] = {
    **{kind.__name__: kind for kind in (*get_args(ast.Operand), ast.Instruction, ast.Variable)},
    "integer": _Memo(integer_value),
    "float_": _Memo(lambda text: float_bits(text)[0]),
    "opcode": _Memo(lambda text: text.partition(".")[0]),
    "modifiers": _Memo(lambda text: tuple(text.split(".")[1:])),
}


class NoTemplate(Exception):
    """The statement has a part that does not follow from its leaves one by one, e.g. a constant expression."""


class Leaves(Struct):
    """The leaves of one statement: texts and spans in ``source``."""

    source: str
    texts: list[str]
    starts: list[int]
    ends: list[int]
    free: set[int]
    """Indices of those that may differ between texts of the skeleton."""
    opcodes: set[int]
    """Indices of those in ``free`` that are an opcode with its modifiers, or look like one."""


def compile_template(node: ast.Instruction | ast.Variable, leaves: Leaves) -> Builder | None:
    """A builder for the skeleton of ``node``, or None if the skeleton has none."""
    writer = _Writer(leaves)
    try:
        source = writer.instruction(node) if isinstance(node, ast.Instruction) else writer.variable(node)
    except NoTemplate:
        return None
    if not leaves.free <= writer.used:
        return None
    build: Builder = eval(f"lambda texts, starts, ends, first, loc: {source}", _NAMESPACE)
    rebuilt = build(leaves.texts, leaves.starts, leaves.ends, 0, getattr(node, "loc", 0))
    return build if rebuilt == node else None


class _Writer:
    """Writes the expression that rebuilds a node."""

    def __init__(self, leaves: Leaves) -> None:
        self.leaves = leaves
        self.used: set[int] = set()
        self.by_start = {start: index for index, start in enumerate(leaves.starts)}

    # ------------------------------------------------------------ leaves and positions

    def leaf(self, start: int, end: int) -> int:
        """The index of the leaf that spans exactly ``start`` to ``end``."""
        index = self.by_start.get(start)
        if index is None or self.leaves.ends[index] != end:
            raise NoTemplate
        return index

    def text(self, index: int) -> str:
        """The text of a leaf, as data of the function."""
        if index in self.leaves.opcodes:
            raise NoTemplate
        self.used.add(index)
        return f"texts[{_at(index)}]"

    def position(self, pos: int) -> str:
        """``pos`` relative to the leaf at or before it."""
        starts, ends = self.leaves.starts, self.leaves.ends
        if pos < starts[0]:
            return f"starts[first]-{starts[0] - pos}"
        index = max(k for k, start in enumerate(starts) if start <= pos)
        if pos == starts[index]:
            return f"starts[{_at(index)}]"
        distance = pos - ends[index]
        if distance < 0:
            raise NoTemplate
        return f"ends[{_at(index)}]+{distance}" if distance else f"ends[{_at(index)}]"

    def span(self, node: ast.Operand | ast.Instruction | ast.Variable) -> str:
        return f"{self.position(node.pos)}, {self.position(node.end)}"

    def number(self, value: int, start: int, end: int) -> str:
        """An integer whose text, from ``start`` to ``end``, is a literal or ``-`` and a literal."""
        index = self.by_start.get(start)
        sign = ""
        if index is None:  # the leaf follows its sign
            index, sign = self.leaf(start + 1, end), self.leaves.source[start]
        elif self.leaves.ends[index] != end:
            raise NoTemplate
        return self.signed(sign, index)

    def signed(self, sign: str, index: int) -> str:
        text = self.leaves.texts[index]
        if sign not in _SIGNS or not text[0].isdigit() or (sign and text[-1] == "U"):
            raise NoTemplate
        return f"{_SIGNS[sign]}integer[{self.text(index)}]"

    # ------------------------------------------------------------ statements

    def instruction(self, node: ast.Instruction) -> str:
        operands = self.sequence(node.operands)
        guard = f"({self.operand(node.guard[0])}, {node.guard[1]})" if node.guard else "None"
        opcode = f"{self.position(node.opcode_pos)}, {self.position(node.opcode_end)}"
        return f"Instruction({self.words(node)}, {operands}, {guard}, {self.span(node)}, {opcode}, loc)"

    def words(self, node: ast.Instruction) -> str:
        """The opcode and its modifiers: of one leaf where no blanks come between."""
        index = self.by_start.get(node.opcode_pos)
        if index not in self.leaves.opcodes or self.leaves.ends[index] != node.opcode_end:
            return f"{node.opcode!r}, {node.modifiers!r}"
        self.used.add(index)
        return f"opcode[texts[{_at(index)}]], modifiers[texts[{_at(index)}]]"

    def variable(self, node: ast.Variable) -> str:
        """A lone register, parameter or array: no initialiser, no linkage."""
        spelling = self.leaves.source[self.leaves.starts[0] : node.end]
        if node.init is not None or node.linkage or len(node.dims) > 1 or _COMPUTED.search(spelling):
            raise NoTemplate
        name = self.leaf(node.pos, node.pos + len(node.name))
        numbers = [index for index, text in enumerate(self.leaves.texts) if text[0].isdigit()]
        align = self.alignment(numbers, node.align)
        dims, count, pointer = "()", "None", "None"
        if node.ptr:
            pointer = f"({node.ptr[0]!r}, {self.alignment(numbers, node.ptr[1])})"
        if node.dims and node.dims[0] is not None:
            dims = f"({self.number_leaf(numbers, node.dims[0])},)"
        elif node.dims:
            dims = "(None,)"
        if node.count is not None:
            count = self.number_leaf(numbers, node.count)
        if numbers:
            raise NoTemplate
        return (
            f"Variable({self.text(name)}, {node.space!r}, {node.type!r}, {node.vector}, {align}, {dims}, {count}, "
            f"None, '', (), {pointer}, {self.span(node)})"
        )

    def alignment(self, numbers: list[int], value: int) -> str:
        """An alignment, of which zero is not none."""
        return f"({self.number_leaf(numbers, value)} or {EXPLICIT_ZERO})" if value else "0"

    def number_leaf(self, numbers: list[int], value: int) -> str:
        """Takes the next number of a declaration: its alignment, the pointer's, the extent or count."""
        if not numbers or integer_value(self.leaves.texts[numbers[0]]) != value:
            raise NoTemplate
        return f"integer[{self.text(numbers.pop(0))}]"

    # ------------------------------------------------------------ operands

    def sequence(self, nodes: Sequence[ast.Operand]) -> str:
        return "(" + "".join(self.operand(node) + ", " for node in nodes) + ")"

    def operand(self, node: ast.Operand) -> str:
        match node:
            case ast.Name():
                index = self.leaf(node.pos, node.end)
                return f"Name({self.text(index)}, starts[{_at(index)}], ends[{_at(index)}])"
            case ast.Int():
                return f"Int({self.number(node.value, node.pos, node.end)}, {node.unsigned}, {self.span(node)})"
            case ast.Float():
                index = self.leaf(node.pos, node.end)
                return f"Float(float_[{self.text(index)}], {node.width}, starts[{_at(index)}], ends[{_at(index)}])"
            case ast.Offset():
                return f"Offset({self.operand(node.base)}, {self.offset(node.base.end, node.end)}, {self.span(node)})"
            case ast.Not() | ast.Neg():
                return f"{type(node).__name__}({self.operand(node.operand)}, {self.span(node)})"
            case ast.Pair():
                return f"Pair({self.operand(node.first)}, {self.operand(node.second)}, {self.span(node)})"
            case ast.Vector() | ast.Group():
                return f"{type(node).__name__}({self.sequence(node.items)}, {self.span(node)})"
            case ast.Address():
                return self.address(node)
            case ast.Sink():
                return f"Sink({self.span(node)})"
        raise NoTemplate

    def address(self, node: ast.Address) -> str:
        end = node.rest[0].pos if node.rest else node.end
        offset = self.offset(node.base.end, end)
        return f"Address({self.operand(node.base)}, {offset}, {self.sequence(node.rest)}, {self.span(node)})"

    def offset(self, start: int, end: int) -> str:
        """The constant between the end of a base and ``end``: nothing, ``+n``, ``-n`` or ``+-n``."""
        inside = [index for index, at in enumerate(self.leaves.starts) if start <= at < end]
        if not inside:
            return "0"
        if len(inside) > 1:
            raise NoTemplate
        return self.signed("".join(self.leaves.source[start : self.leaves.starts[inside[0]]].split()), inside[0])


def _at(index: int) -> str:
    return f"first+{index}" if index else "first"
