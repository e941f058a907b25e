"""Structs that kernels take by value: members at the offsets that C gives them, some of which are pointers or handles."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ptxemu.device.module_info import Parameter
from ptxemu.process.numpy import np
from ptxemu.text.errors import InputError, shown

POINTER = 8  # bytes
DEEPEST = 16  # structs in structs
LISTED = 8  # members in a message
LONGEST_NAME = 40  # characters of a member's name in messages
CTYPES = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union)


class ByValue(Struct, frozen=True):
    """A member that is bytes, at a multiple of ``align``: an array, a vector such as ``float4``."""

    data: bytes
    align: int


class Member(Struct, frozen=True):
    """A member of a struct ``offset`` bytes from its beginning: bytes, or what has an address or a handle."""

    name: str
    offset: int
    value: object

    def place(self, struct: str) -> str:
        """What messages call it."""
        return f"{struct}, member {self.name} at byte {self.offset}"


class _Node(Struct):
    """A member, or a struct with its members, at ``offset`` in the one that it is in. ``problem`` says why it cannot be there.

    Each has a size, so that no more of them are looked at than the parameter has bytes.
    """

    name: str
    size: int
    align: int
    value: object = None
    members: list[_Node] = []
    offset: int = 0
    problem: str = ""


def has_members(value: object) -> bool:
    """Whether a value is a struct in members, not in bytes."""
    return isinstance(value, Mapping | list | tuple) or (isinstance(value, np.void) and value.dtype.hasobject)


def members_of(parameter: Parameter, value: object, where: str) -> list[Member]:
    """The members of a struct parameter (``.param .align N .b8 p[n]``), which fill it.

    ``value`` holds them in C's order: a mapping or a sequence of NumPy's and ctypes' scalars, of arrays, buffers and the like
    for pointers, and of structs; or it is a NumPy record whose pointers are objects.  Raises InputError, beginning with
    ``where``, which names the member that cannot be one.
    """
    root = _struct("", value, parameter.size, 0)
    found = list(_flat(root, "", 0, where))
    if _rounded(root.size, parameter.align) != parameter.size:
        places = ", ".join(f"{member.name} at {member.offset}" for member in found[:LISTED])
        rest = f" and {len(found) - LISTED} more" if len(found) > LISTED else ""
        raise InputError(f"{where}: has {parameter.size} bytes, but its members take {root.size}: {places}{rest}")
    return found


def _struct(name: str, value: object, room: int, depth: int) -> _Node:
    """A struct; members that do not begin in ``room`` bytes are left out, as nothing can come of them."""
    if depth > DEEPEST:
        return _Node(name, 1, 1, problem=f"structs are nested more than {DEEPEST} deep")
    node = _Node(name, 0, 1)
    for own, item, wanted in _items(value):
        if has_members(item):
            member = _struct(own, item, room - node.size, depth + 1)
        else:
            member = _member(own, item)
        member.offset = _rounded(node.size, member.align)
        if wanted is not None and wanted != member.offset:
            member.problem = f"the record has it at byte {wanted}: it is not laid out as C does it (align=True)"
        node.size, node.align = member.offset + member.size, max(node.align, member.align)
        node.members.append(member)
        if node.size > room or member.problem:
            member.problem = member.problem or "ends outside of the struct"
            return node
    if not node.members:
        return _Node(name, 1, 1, problem="is a struct without members")
    node.size = _rounded(node.size, node.align)
    return node


def _items(value: object) -> Iterator[tuple[str, object, int | None]]:
    """Names and values of members, and the offsets of those of a record."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield _name(name), item, None
    elif isinstance(value, np.void):
        for name, (kind, offset, *_) in (value.dtype.fields or {}).items():
            item = value[name]
            bare = kind == np.object_ or has_members(item)
            yield _name(name), item if bare else ByValue(item.tobytes(), kind.base.alignment), offset
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield str(number), item, None


def _name(name: object) -> str:
    return shown(name).strip("'")[:LONGEST_NAME]


def _member(name: str, value: object) -> _Node:
    """A member that is not a struct in members itself."""
    if isinstance(value, ByValue):
        if not value.data:
            return _Node(name, 1, 1, problem="has no bytes")
        return _Node(name, len(value.data), value.align, value.data)
    if isinstance(value, bytes):
        return _member(name, ByValue(value, 1))
    if isinstance(value, np.generic) and not value.dtype.hasobject:
        return _member(name, ByValue(value.tobytes(), value.dtype.alignment))
    if isinstance(value, CTYPES):
        return _member(name, ByValue(bytes(value), ctypes.alignment(value)))
    if isinstance(value, int | float | complex | str):
        kind = type(value).__name__
        return _Node(name, 1, 1, problem=f"{kind} is no type of C: give np.int32({shown(value)}) or another type of NumPy's")
    return _Node(name, POINTER, POINTER, value)


def _flat(node: _Node, path: str, offset: int, where: str) -> Iterator[Member]:
    """The members of a struct and of those in it, with their offsets in the outermost one."""
    if node.problem and not path:
        raise InputError(f"{where}: {node.problem}")
    for inner in node.members:
        member = Member(f"{path}{inner.name}", offset + inner.offset, inner.value)
        yield from _flat(inner, f"{member.name}.", member.offset, where)
        if inner.problem:
            raise InputError(f"{member.place(where)}: {inner.problem}")
        if not inner.members:
            yield member


def _rounded(offset: int, align: int) -> int:
    return -(-offset // align) * align
