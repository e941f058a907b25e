"""Expressions over registers, special registers and arrays: those of cases, with the words of CUDA C++ and PTX."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ptxemu.case.expression import evaluate
from ptxemu.text.errors import InputError

NAME = re.compile(r"(?:threadIdx|blockIdx|blockDim|gridDim)\.[xyz]|%[\w$.]+|\$?[A-Za-z_][\w$]*")
OPERATORS = ((re.compile(r"&&"), " and "), (re.compile(r"\|\|"), " or "), (re.compile(r"!(?!=)"), " not "))


def value(text: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression. Raises InputError."""
    used: dict[str, Any] = {}

    def meant(match: re.Match[str]) -> str:
        name = match[0]
        if name in names:
            key = f"v{len(used)}_"
            used[key] = names[name]
            return key
        if name[0] in "%$":
            raise InputError(f"there is no register {name} here")
        return name

    plain = NAME.sub(meant, text)
    for pattern, word in OPERATORS:
        plain = pattern.sub(word, plain)
    return evaluate(plain, used, text.strip() or "expression")


def holds(text: str, names: Mapping[str, Any]) -> bool:
    """Whether a condition does."""
    found = value(text, names)
    try:
        return bool(found)
    except ValueError:
        raise InputError(f"{text}: is an array, not a condition") from None
