"""Constants that compiled code hands to the runtime: the structs of its headers, as LLVM spells them.

Types and fields come from cffi, so a field that is added in C is missed here by name and never read at a wrong place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

from ptxemu._runtime import ffi

Value: TypeAlias = "int | Sequence[Value] | Mapping[str, Value]"


@cache
def site_type(struct: str) -> str:
    """The LLVM type of a struct of the runtime, which begins with ``pos``, the source position as an i32."""
    return _type_of(ffi.typeof(struct))


def site_literal(struct: str, values: Mapping[str, Value]) -> str:
    """The LLVM constant of a struct whose fields have these values, without its type. Raises TypeError unless each has one."""
    return _literal(ffi.typeof(struct), values)


@cache
def _type_of(kind: Any) -> str:
    if kind.kind == "struct":
        return "{ " + ", ".join(_type_of(field.type) for _, field in kind.fields) + " }"
    if kind.kind == "array":
        return f"[{kind.length} x {_type_of(kind.item)}]"
    return f"i{8 * ffi.sizeof(kind)}"


def _literal(kind: Any, value: Value) -> str:
    if kind.kind == "struct":
        assert isinstance(value, Mapping)
        return "{ " + ", ".join(_typed(field.type, value[name]) for name, field in _fields(kind, value)) + " }"
    if kind.kind == "array":
        assert isinstance(value, Sequence) and len(value) == kind.length
        return "[" + ", ".join(_typed(kind.item, item) for item in value) + "]"
    assert isinstance(value, int)
    return str(value)


def _typed(kind: Any, value: Value) -> str:
    return f"{_type_of(kind)} {_literal(kind, value)}"


def _fields(kind: Any, values: Mapping[str, Value]) -> Sequence[tuple[str, Any]]:
    """Name and description of each field."""
    names = [name for name, _ in kind.fields]
    if values.keys() != set(names):
        raise TypeError(f"{kind.cname} has the fields {', '.join(names)}, not {', '.join(values)}")
    found: Sequence[tuple[str, Any]] = kind.fields
    return found
