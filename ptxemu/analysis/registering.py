"""Tables of rules by the names of what they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Rule = TypeVar("Rule")


def registering(rules: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator that is given names, under which it keeps a rule."""

    def named(*names: str) -> Callable[[Rule], Rule]:
        def add(rule: Rule) -> Rule:
            rules.update(dict.fromkeys(names, rule))
            return rule

        return add

    return named
