"""Properties that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class lazy_property(Generic[Value]):
    """``functools.cached_property`` without its lock.

    Python 3.11 holds one lock for all objects of a class while it makes a value: other threads wait, and a child that is forked
    meanwhile would wait for ever. Here two threads may both make the value; all get the one that was kept first.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, item: Any, owner: type | None = None) -> Value:
        value: Value = vars(item).setdefault(self._name, self._make(item))
        return value
