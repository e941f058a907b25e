"""Calls into C that may take long, which Ctrl-C can leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
PATIENCE = 1.0  # seconds between two looks at whether the thread exists

_left: set[threading.Thread] = set()


def interruptible(action: Callable[[], Result]) -> Result:
    """What ``action`` returns or raises.

    Python answers signals in the main thread and between its own instructions. So there, the action runs in a thread of
    its own; if a signal's handler raises, that thread goes on, and its result is lost. If one forks, the child has
    no such thread, and does the action itself. Where no signal has a handler, as in the compile server, there is no
    thread either: a process that is short of memory may wait for ever for one to start.
    """
    if threading.current_thread() is not threading.main_thread() or not _any_handler():
        return action()
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            results.append(action())
        except BaseException as error:  # raised again where it is waited for
            errors.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=run, name="ptxemu-compiler")
    try:
        worker.start()
        while not done.wait(PATIENCE) and worker.is_alive():
            pass
    except RuntimeError:
        if worker.ident is None:  # the system allows no more threads
            return action()
        raise
    except BaseException:
        _left.add(worker)
        raise
    if errors:
        raise errors[0]
    return results[0] if done.is_set() else action()


def _any_handler() -> bool:
    return any(callable(signal.getsignal(number)) for number in signal.valid_signals())


def any_left() -> bool:
    """Whether an action is running that nothing waits for any more: the interpreter would wait for it before exiting."""
    return any(worker.is_alive() for worker in _left)
