"""Locks that a forked child finds free: whichever thread of the parent held one does not exist in the child."""

from __future__ import annotations

import os
import threading
import time
import weakref
from contextlib import AbstractContextManager, ExitStack
from importlib import _bootstrap  # the locks of modules are not told otherwise

_locks: weakref.WeakSet[threading.RLock] = weakref.WeakSet()


def new_lock() -> threading.RLock:
    """A lock. A thread may take it again, as it does when a signal handler or the collector comes in between."""
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_locks):
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # what threading and logging do to their own locks


os.register_at_fork(after_in_child=_free_all)

importing = threading.RLock()
"""Held while ptxemu imports a part of itself or a library when it is first needed, and by a thread that forks: what another
thread was importing could never be imported in the child."""

MOMENT = 0.001  # seconds between looks at what other threads import
PATIENCE = 10.0  # seconds; a thread that forks while it imports must not wait for one that waits for its import

_held: list[AbstractContextManager[object]] = []
_held_now = ExitStack()


def hold_in_forks(lock: AbstractContextManager[object]) -> None:
    """Have a thread that forks hold a lock meanwhile: for locks that are never held for long, of what must be whole."""
    _held.append(lock)


def _others_import() -> bool:
    """Whether another thread is about to import something, as far as Python tells: libraries do not know our lock."""
    me = threading.get_ident()
    locks = (reference() for reference in list(getattr(_bootstrap, "_module_locks", {}).values()))
    return any(getattr(lock, "owner", None) not in (None, me) for lock in locks)


def _before_fork() -> None:
    deadline = time.monotonic() + PATIENCE
    if importing.acquire(timeout=PATIENCE):
        _held_now.callback(importing.release)
    while _others_import() and time.monotonic() < deadline:
        time.sleep(MOMENT)
    for lock in _held:
        _held_now.enter_context(lock)


os.register_at_fork(before=_before_fork, after_in_parent=_held_now.close, after_in_child=_held_now.close)
