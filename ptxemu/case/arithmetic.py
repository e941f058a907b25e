"""The arithmetic of sweeps: ``${(n + block - 1) // block}``. Its work is bounded: what is only listed is calculated, too."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ptxemu.text.suggestions import closest

LONGEST = 200  # characters
LEAST, GREATEST = -(2**63), 2**64 - 1
FUNCTIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in (min, max)}
OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip


def calculate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression: numbers, names, ``+ - * / // %``, comparisons, ``a if b else c``, ``min``, ``max`` and indices.

    Raises ValueError, which says why there is none.
    """
    if len(text) > LONGEST:
        raise ValueError(f"has {len(text)} characters, more than {LONGEST}")
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text.strip(), "<expression>", "eval")
        return _value(tree.body, names)
    except SyntaxError:
        raise ValueError("is no expression") from None
    except (ArithmeticError, IndexError) as error:
        raise ValueError(str(error)) from None
    except TypeError:
        raise ValueError("mixes numbers and texts") from None


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return _bounded(value)
        case ast.Name(id=name):
            if name not in names:
                raise ValueError(f"nothing is called '{name}'{closest(name, names)}")
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _bounded(-_number(operand, names))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _bounded(OPERATORS[type(op)](_number(left, names), _number(right, names)))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
            return COMPARISONS[type(op)](_value(left, names), _value(right, names))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names) else orelse, names)
        case ast.Subscript(value=ast.Name() as value, slice=index):
            return _value(value, names)[_number(index, names)]
        case ast.Call(func=ast.Name(id=name), args=[_, _, *_] as arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_number(argument, names) for argument in arguments))
    raise ValueError(f"'{ast.unparse(node)}' is more than arithmetic")


def _number(node: ast.expr, names: Mapping[str, Any]) -> Any:
    value = _value(node, names)
    if not isinstance(value, int | float):
        raise TypeError
    return value


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not LEAST <= value <= GREATEST:
        raise ValueError("is out of range")
    return value
