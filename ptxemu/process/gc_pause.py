"""The garbage collector while large trees are made, and many modules imported."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from ptxemu.process.locks import importing

LEAST = 1_000_000


class _Unsearched:
    """How many objects were moved to the oldest generation without a search, and how many may be.

    A full search comes when they are a quarter of what was alive at the last one, which is the collector's own rule.
    """

    def __init__(self) -> None:
        self.objects, self.most = 0, LEAST

    def settle(self) -> None:
        """Move the young objects to the oldest generation, or search all. Not where the host has frozen objects."""
        if gc.get_freeze_count():
            return
        self.objects += gc.get_count()[0]
        due = self.objects > self.most
        if due:
            gc.collect()
        gc.freeze()
        if due:
            self.objects, self.most = 0, max(LEAST, gc.get_freeze_count() // 4)
        gc.unfreeze()


_unsearched = _Unsearched()


@contextmanager
def collector_paused(lives_on: bool = True) -> Iterator[None]:
    """Trees are large: the collector would only walk them again and again (half the time of a check, a fifth of a compilation).

    What has been made counts as old if it ``lives_on``; else the collector looks at it next.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if lives_on:
                _unsearched.settle()
            gc.enable()


@contextmanager
def importing_many() -> Iterator[None]:
    """Hold ``importing`` for what imports many modules: their functions and classes stay, and there is nothing to collect."""
    with importing, collector_paused():
        yield
