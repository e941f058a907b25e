"""Dictionaries whose changes can be taken back, at a cost that depends on the changes alone."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Journal:
    """The changes of some dictionaries, in order."""

    def __init__(self) -> None:
        self._changes: list[tuple[dict, object, object]] = []  # type: ignore[type-arg]
        self._dictionaries: list[dict] = []  # type: ignore[type-arg]

    def dictionary(self) -> Noted[K, V]:
        """A new dictionary under the journal's care; items are only added or replaced."""
        made: Noted[K, V] = Noted(self._changes)
        self._dictionaries.append(made)
        return made

    def mark(self) -> int:
        """A state to go back to."""
        return len(self._changes)

    def undo(self, mark: int) -> None:
        """Take back what has changed since ``mark``."""
        while len(self._changes) > mark:
            changed, key, old = self._changes.pop()
            if old is None:
                dict.pop(changed, key)
            else:
                dict.__setitem__(changed, key, old)

    def clear(self) -> None:
        """Empty the dictionaries; earlier marks are void."""
        for dictionary in self._dictionaries:
            dictionary.clear()
        self._changes.clear()


class Noted(dict[K, V]):
    """A dictionary that notes its changes. No value is None."""

    def __init__(self, changes: list) -> None:  # type: ignore[type-arg]
        super().__init__()
        self._changes = changes

    def __setitem__(self, key: K, value: V) -> None:
        self._changes.append((self, key, self.get(key)))
        super().__setitem__(key, value)
