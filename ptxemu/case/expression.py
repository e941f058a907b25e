"""Expressions of case files: the part of Python that computes arrays and can do nothing else.

Whatever is not listed here is refused before anything is evaluated: there is no way to files, imports, other processes or
Python's own machinery. How long an expression computes, and with how much memory, is not bounded.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from ptxemu.text.errors import InputError

LONGEST = 20_000  # characters

NODES = (
    ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Starred, ast.Call, ast.keyword,
    ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Lambda,
    ast.arguments, ast.arg, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension,
    ast.expr_context, ast.unaryop, ast.operator, ast.boolop, ast.cmpop,
)  # fmt: skip

# Python's own functions, and attributes of NumPy, of its parts, of arrays and of numbers. Each must be harmless wherever an
# object has it.
GROUPS = {
    "functions": (
        "abs all any bool bytes complex dict divmod enumerate filter float int len list map max min pow range reversed "
        "round set slice sorted sum tuple zip"
    ),
    "constants and types": (
        "pi e euler_gamma inf nan newaxis dtype iinfo finfo eps tiny smallest_normal bits name kind itemsize nbytes"
    ),
    "making arrays": (
        "array asarray ascontiguousarray zeros ones full zeros_like ones_like full_like arange linspace logspace "
        "geomspace eye identity diag tri tril triu meshgrid mgrid ogrid r_ c_ indices fromfunction fromiter frombuffer "
        "copy vectorize"
    ),
    "shapes and places": (
        "shape ndim size T mT flat real imag reshape ravel flatten transpose swapaxes moveaxis squeeze expand_dims "
        "atleast_1d atleast_2d atleast_3d broadcast_to concatenate stack vstack hstack dstack column_stack split "
        "array_split hsplit vsplit tile repeat pad flip fliplr flipud roll rot90 take take_along_axis compress choose "
        "select where nonzero flatnonzero argwhere ix_ unravel_index ravel_multi_index diagonal trace delete insert "
        "append packbits unpackbits"
    ),
    "values": (
        "astype view byteswap tobytes tolist item conj clip round around fix nan_to_num real_if_close piecewise interp "
        "angle sum prod mean std var min max amin amax ptp median percentile quantile average argmin argmax cumsum "
        "cumprod diff gradient nansum nanprod nanmin nanmax nanmean any all count_nonzero count sort argsort partition "
        "argpartition lexsort searchsorted unique bincount histogram digitize in1d isin intersect1d union1d setdiff1d "
        "isclose allclose array_equal dot vdot inner outer matmul tensordot einsum kron cross convolve correlate "
        "apply_along_axis reduce accumulate reduceat polyval"
    ),
    "parts": (
        "linalg norm inv det solve lstsq matrix_power eigvals svd qr fft ifft fft2 ifft2 fftn ifftn rfft irfft fftfreq "
        "fftshift ifftshift random default_rng Generator PCG64 integers normal standard_normal uniform permutation"
    ),
    "numbers": ("bit_length bit_count to_bytes from_bytes fromhex hex is_integer"),
}
BUILTINS = GROUPS.pop("functions").split()
ATTRIBUTES = frozenset(name for names in GROUPS.values() for name in names.split())


def evaluate(text: str, inputs: Mapping[str, Any], where: str) -> Any:
    """The value of an expression over the inputs and ``np``. Raises InputError, which begins with ``where``."""
    if len(text) > LONGEST:
        raise InputError(f"{where}: has {len(text)} characters, more than {LONGEST}")
    try:
        tree = ast.parse(text.strip(), "<expression>", "eval")
        refused = next(_refused(tree), None)
        if refused is None:
            code = compile(tree, "<expression>", "eval")
            with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                return eval(code, {"__builtins__": _functions(), "np": np, **inputs})
    except Exception as error:
        raise InputError(f"{where}: {type(error).__name__}: {_first_line(error)}") from None
    raise InputError(f"{where}: {refused} is not available in expressions, only in a reference")


def _refused(tree: ast.AST) -> Iterator[str]:
    """What an expression must not have."""
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            yield f"'{ast.unparse(node)}'" if isinstance(node, ast.expr) else type(node).__name__
        elif isinstance(node, ast.Attribute) and node.attr not in _attributes():
            yield f"'.{node.attr}'"
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield f"'{node.id}'"


@cache
def _functions() -> dict[str, Any]:
    """What expressions find as Python's own functions; NumPy, when it imports parts of itself, finds one more."""
    return {name: getattr(builtins, name) for name in (*BUILTINS, "__import__")}


@cache
def _attributes() -> frozenset[str]:
    """What is listed, every universal function of NumPy, and its types of numbers."""
    found = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    types = {name for name, value in found.items() if isinstance(value, type) and issubclass(value, np.number | np.bool_)}
    return ATTRIBUTES | types | {name for name, value in found.items() if isinstance(value, np.ufunc)}


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")
