"""Expressions over variables, registers, special registers and arrays: those of cases, with the words of CUDA C++ and PTX.

What C++ writes for a place (``p->next->x``, ``vals[1][i]``, ``*out``, ``&p``, ``*x@4``) is replaced by its value first; the
rest is computed as the expressions of cases are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ptxemu.case.expression import LONGEST, evaluate
from ptxemu.debugger import values
from ptxemu.debugger.inspect import MOST_BYTES
from ptxemu.debugger.variables import Scope, Value
from ptxemu.dwarf.types import POINTERS
from ptxemu.text.errors import InputError

NAME = r"(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]|%[\w$.]+|\$?[A-Za-z_][\w$]*(?:::[A-Za-z_]\w*)*"
TOKEN = re.compile(
    rf"(?P<space>\s*)(?:(?P<name>{NAME})|(?P<other>[0-9][\w.]*|&&|\|\||\*\*|->|[=!<>]=|<<|>>|'[^']*'|\"[^\"]*\"|\S))"
)
SUFFIX = re.compile(r"\s*(?:(?P<arrow>->|\.)\s*(?P<member>[A-Za-z_]\w*+)(?!\s*\()|(?P<index>\[)|@\s*(?P<count>[0-9]{1,7}))")
WORDS = {"&&": " and ", "||": " or ", "!": " not ", "true": "True", "false": "False"}
PREFIXES = ("*", "**", "&")
OPERAND = frozenset("+-*/%&|^~<>=!(,[:?") | {"&&", "||", "**", "==", "!=", "<=", ">=", "<<", ">>"}
"""After which a ``*`` or ``&`` belongs to what follows."""


def value(text: str, names: Mapping[str, Any], scope: Scope | None = None) -> Any:
    """The value of an expression: a number, an array of them, or what NumPy makes of arrays. Raises InputError."""
    if len(text) > LONGEST:
        raise InputError(f"the expression has {len(text)} characters, more than {LONGEST}")
    return _Reading(text, names, scope).value()


def place(text: str, names: Mapping[str, Any], scope: Scope | None) -> Value | None:
    """The variable, or the part of one, that a text is no more than; None if it is an expression. Raises InputError."""
    return None if scope is None or len(text) > LONGEST else _Reading(text, names, scope).place()


def holds(text: str, names: Mapping[str, Any], scope: Scope | None = None) -> bool:
    """Whether a condition does."""
    found = value(text, names, scope)
    try:
        return bool(found)
    except ValueError:
        raise InputError(f"{text}: is an array, not a condition") from None


class _Reading:
    """One expression, read from left to right."""

    def __init__(self, text: str, names: Mapping[str, Any], scope: Scope | None) -> None:
        self.text, self.names, self.scope = text, names, scope
        self.used: dict[str, Any] = {}

    def value(self) -> Any:
        at, prefix, before, out = 0, "", "(", list[str]()
        while found := TOKEN.match(self.text, at):
            at, name, other = found.end(), found["name"], found["other"]
            if other in PREFIXES and before in OPERAND:
                prefix += other
                continue
            if name is not None and before != ".":
                at, word = self._name(name, at, prefix)
                prefix = ""
            else:
                word = WORDS.get(other or "", name or other)
            if prefix:
                raise InputError(f"{self.text.strip()}: {prefix} must stand before a variable")
            out.append(found["space"] + word)
            before = other or "name"
        return evaluate("".join(out), self.used, self.text.strip() or "expression")

    def place(self) -> Value | None:
        stars = re.match(r"[\s*&]*", self.text)
        assert stars is not None
        name = re.compile(NAME).match(self.text, stars.end())
        if name is None or name[0] in self.names:
            return None
        found = self._variable(name[0], name.end())
        if found is None or self.text[found[1] :].strip():
            return None
        prefix = stars[0].replace(" ", "")
        return None if "&" in prefix else self._dereferenced(found[0], prefix)

    def _name(self, name: str, at: int, prefix: str) -> tuple[int, str]:
        """What stands for a name, and where the expression goes on behind it and its suffixes."""
        found = None if name in self.names and name[0] in "%$" else self._variable(name, at)
        if found is not None:
            variable, at = found
            return at, self._word(self._taken(variable, prefix))
        if prefix:
            raise InputError(f"{self.text.strip()}: {prefix} must stand before a variable")
        if name in self.names:
            return at, self._word(self.names[name])
        if name[0] in "%$":
            raise InputError(f"there is no register {name} here")
        return at, WORDS.get(name, name)

    def _word(self, value: Any) -> str:
        key = f"v{len(self.used)}_"
        self.used[key] = value
        return f" {key} "

    def _variable(self, name: str, at: int) -> tuple[Value, int] | None:
        """A variable with its suffixes, and where they end; None if there is none of that name."""
        if self.scope is None or self.text[at:].lstrip().startswith("("):
            return None
        found = self.scope.find(name)
        if found is None or self._is_array(name, found, at):
            return None
        while suffix := SUFFIX.match(self.text, at):
            if suffix["member"]:
                found = values.member(self._struct(found), suffix["member"])
            elif suffix["count"]:
                found = Value(found.type, found.place, found.bits, int(suffix["count"]))
            else:
                end = _closing(self.text, suffix.end())
                found = self._indexed(found, self.text[suffix.end() : end])
                at = end + 1
                continue
            at = suffix.end()
        return found, at

    def _is_array(self, name: str, found: Value, at: int) -> bool:
        """Whether an array of the launch is meant, by what is done with it, and not the pointer to it."""
        return name in self.names and found.type.plain.tag in POINTERS and self.text[at:].lstrip()[:1] == "."

    def _struct(self, found: Value) -> Value:
        """What has members: the struct itself, or the one that a pointer leads to."""
        assert self.scope is not None
        return self.scope.target(found) if found.count is None and found.type.plain.tag in POINTERS else found

    def _indexed(self, found: Value, index: str) -> Value:
        assert self.scope is not None
        if not values.has_parts(found):
            raise InputError(f"{self.text.strip()}: {found.type} has no elements")
        first, colon, end = index.partition(":")
        if colon:
            begin = self._number(first or "0")
            return _row(values.element(self.scope, found, begin), self._number(end) - begin)
        return values.element(self.scope, found, self._number(index))

    def _number(self, text: str) -> int:
        found = value(text, self.names, self.scope)
        if isinstance(found, bool) or not isinstance(found, int) or not -(1 << 40) < found < 1 << 40:
            raise InputError(f"{text.strip()} is not an index")
        return found

    def _taken(self, found: Value, prefix: str) -> Any:
        """The number, or numbers, of a variable after ``*`` and ``&``."""
        assert self.scope is not None
        if prefix.startswith("&"):
            return self.scope.address(self._dereferenced(found, prefix[1:]))
        return values.plain(self.scope, self._dereferenced(found, prefix))

    def _dereferenced(self, found: Value, stars: str) -> Value:
        for star in stars:
            if star == "&" or not values.has_parts(found):
                raise InputError(f"{self.text.strip()}: {found.type} is no pointer")
            count = found.count
            found = values.element(self.scope, Value(found.type, found.place, found.bits), 0)  # type: ignore[arg-type]
            found = found if count is None else _row(found, count)
        return found


def _row(first: Value, count: int) -> Value:
    if not 0 < count <= MOST_BYTES:
        raise InputError(f"{count} elements cannot be shown")
    return Value(first.type, first.place, first.bits, count)


def _closing(text: str, at: int) -> int:
    """Where the bracket closes that has opened before a place."""
    depth = 1
    for index in range(at, len(text)):
        depth += (text[index] == "[") - (text[index] == "]")
        if not depth:
            return index
    raise InputError(f"{text.strip()}: a ] is missing")
