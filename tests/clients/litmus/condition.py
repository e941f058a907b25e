"""Final conditions of litmus tests: comparisons of registers, locations and numbers, with not, and, or."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.int64]
Truth = NDArray[np.bool_]
TOKEN = re.compile(r"\s*(/\\|\\/|~|not\b|[()\[\]:]|==|!=|<=|>=|=|<|>|-?0x[0-9a-fA-F]+|-?\d+|\w+)")
COMPARISONS: dict[str, Callable[[Values, Values], Truth]] = {
    "=": operator.eq, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


class Condition:
    """A condition whose values are arrays, one element for each run: ``P0:r1`` and ``x`` by these names."""

    def __init__(self, text: str) -> None:
        self.names: set[str] = set()
        self._tokens = _tokens(text)
        self._holds = self._either()
        if self._tokens:
            raise ValueError(f"behind a condition: {self._tokens[-1]!r}")

    def __call__(self, values: Mapping[str, Values]) -> Truth:
        return self._holds(values)

    def _next(self, *wanted: str) -> str | None:
        """The next token, if it is one of those."""
        return self._tokens.pop() if self._tokens and self._tokens[-1] in wanted else None

    def _either(self) -> Callable[[Mapping[str, Values]], Truth]:
        sides = [self._both()]
        while self._next("\\/"):
            sides.append(self._both())
        return lambda values: np.logical_or.reduce([side(values) for side in sides])

    def _both(self) -> Callable[[Mapping[str, Values]], Truth]:
        sides = [self._single()]
        while self._next("/\\"):
            sides.append(self._single())
        return lambda values: np.logical_and.reduce([side(values) for side in sides])

    def _single(self) -> Callable[[Mapping[str, Values]], Truth]:
        if self._next("~", "not"):
            denied = self._single()
            return lambda values: ~denied(values)
        if self._next("("):
            inner = self._either()
            if not self._next(")"):
                raise ValueError("a parenthesis is not closed")
            return inner
        left = self._value()
        compare = self._next(*COMPARISONS)
        if compare is None:
            raise ValueError("a comparison is missing")
        right = self._value()
        return lambda values: COMPARISONS[compare](left(values), right(values))

    def _value(self) -> Callable[[Mapping[str, Values]], Values]:
        bracket = self._next("[")
        if not self._tokens:
            raise ValueError("a value is missing")
        token = self._tokens.pop()
        if re.fullmatch(r"P?\d+", token) and self._next(":"):
            token = f"P{token.removeprefix('P')}:{self._tokens.pop()}"
        elif re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", token) and not token[0].isalpha():
            number = np.array([int(token, 0)])
            return lambda _: number
        if bracket and not self._next("]"):
            raise ValueError("a bracket is not closed")
        self.names.add(token)
        return lambda values: values[token]


def _tokens(text: str) -> list[str]:
    """The tokens, the last one first."""
    found, at, text = [], 0, text.strip().removesuffix(";").rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"not in a condition: {text[at:]!r}")
        found.append(match.group(1))
        at = match.end()
    return found[::-1]
