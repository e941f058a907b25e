"""The garbage collector while large trees are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Trees are large and have no cycles: the collector would only walk them again and again (half the time of a check).

    What the block makes is young when the block ends, so that the collector still finds what becomes garbage: a process that
    reads modules for ever does not grow.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
