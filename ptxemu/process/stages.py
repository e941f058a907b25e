"""The stages of work that may take long, for those who show how far it is and where the time goes.

Whoever does the work says which stage it is in; a listener, if the calling code has one, is told on the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

LOAD, PARSE, CHECK, INPUTS, COMPILE, RUN = "load", "parse", "check", "inputs", "compile", "run"
STAGES = (LOAD, PARSE, CHECK, INPUTS, COMPILE, RUN)


class Listener(Protocol):
    """Who is told. Stages lie in one another: the one that began last ends first."""

    def begin(self, stage: str) -> None: ...

    def reached(self, done: int, total: int) -> None:
        """Of the stage that began last, ``done`` blocks of ``total`` are done; told a few times a second."""

    def end(self) -> None: ...


_listener: ContextVar[Listener | None] = ContextVar("ptxemu_stages", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a listener of the stages of what is done within."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """What is done within is this stage, one of STAGES."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    listener.begin(name)
    try:
        yield
    finally:
        listener.end()


def reached(done: int, total: int) -> None:
    """Tell how many blocks are done."""
    if (listener := _listener.get()) is not None:
        listener.reached(done, total)
