"""Handles: how an object in a table of the runtime is named in kernels, and how long it lives there."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any, Protocol

from ptxemu.text.errors import InputError


class Table(Protocol):
    def add(self, item: Any, /) -> int: ...
    def remove(self, handle: int) -> None: ...


class HandleObject:
    """Something that kernels reach by its 64-bit ``handle``; the table forgets it with the last reference to this object."""

    def __init__(self, table: Table, item: object) -> None:
        self.handle = table.add(item)
        self._table = table
        self._finalizer = weakref.finalize(self, _remove, table, self.handle)
        self._finalizer.atexit = False

    def belongs_to(self, table: Table) -> bool:
        """Whether launches that use ``table`` know the handle."""
        return self._table is table and self._finalizer.alive

    def close(self) -> None:
        """Retire the handle; the memory goes with the last reference to it."""
        self._finalizer()

    def __int__(self) -> int:
        return self.handle


def _remove(table: Table, handle: int) -> None:
    with suppress(InputError):
        table.remove(handle)
