"""Streams: work that is done in order, behind the program's back, and what the program can know of it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ptxemu.process.locks import new_lock
from ptxemu.text.errors import Error, InputError, shown

if TYPE_CHECKING:
    from ptxemu.device.device import Device

Result = TypeVar("Result")
Stop = threading.Event
MOMENT = 0.05  # seconds until a stream that waits for an event sees that it is to stop
PATIENCE = 5.0  # seconds that the end of the program waits for what it stops


class Pending(Generic[Result]):
    """Work in a stream: what a launch with a stream returns. ``await`` it, or ask for its :meth:`result`.

    Until it is done, what it was given belongs to it: NumPy arrays are copied to the device when the launch begins, and
    back when it ends, so that the program must neither read nor write them in between.
    """

    def __init__(self, stream: Stream, name: str, action: Callable[[Stop], Result]) -> None:
        self.name = name
        self._stream = stream
        self._action: Callable[[Stop], Result] | None = action
        self._stop = Stop()
        self._future: Future[Result] = Future()
        self._process = os.getpid()

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        self._check_process()
        return self._future.done()

    def result(self, timeout: float | None = None) -> Result:
        """Wait for the end, ``timeout`` in seconds. Ctrl-C stops what is waited for, as it does a launch without a stream.

        Raises what the work has raised (a Fault, a LaunchTimeout ...), Error if it was not done because work before it has
        failed, ``concurrent.futures.CancelledError`` if it was cancelled, and ``TimeoutError``, after which it goes on.
        """
        self._check_process()
        try:
            return self._future.result(timeout)
        except Exception as error:
            self._stream._tell(error)
            raise
        except BaseException:
            self.cancel()
            raise

    def cancel(self) -> bool:
        """Do not do it, or, if it runs, stop it: no array is copied back. False: it has ended. What stands behind it is done."""
        self._check_process()
        self._stop.set()
        return self._future.cancel() or not self._future.done()

    def __await__(self) -> Generator[Any, None, Result]:
        return self._awaited().__await__()

    async def _awaited(self) -> Result:
        self._check_process()
        import asyncio  # only programs that have it already come here

        try:
            return await asyncio.wrap_future(self._future)
        except asyncio.CancelledError:
            self.cancel()
            raise
        except Exception as error:
            self._stream._tell(error)
            raise

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise Error(f"{self.name}: the process was forked meanwhile: the work goes on in the parent alone")

    def _perform(self) -> None:
        """Do it, unless work before it has failed."""
        action, self._action = self._action, None
        if action is None or not self._future.set_running_or_notify_cancel():
            return
        failed = self._stream._failed
        if failed is not None:
            problem = Error(f"{self.name} was not done, as work before it in the stream has failed")
            problem.__cause__ = failed
            self._future.set_exception(problem)
            return
        try:
            if self._stop.is_set():
                raise CancelledError
            result = action(self._stop)
        except BaseException as error:
            if not isinstance(error, CancelledError):
                self._stream._failed = error  # before anybody can know of it
            del action
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def __repr__(self) -> str:
        return f"<{self.name}: {'done' if self._future.done() else 'pending'}>"


class Event(Pending[float]):
    """A point in a stream: it is done when all work before it is. Its result is the time, in seconds of ``time.monotonic``."""

    @property
    def time(self) -> float:
        """When it was reached, in seconds of ``time.monotonic``; waits for it."""
        return self.result()

    def seconds_since(self, earlier: Event) -> float:
        """The time from another event, of any stream, to this one; waits for both."""
        return self.time - earlier.time


class Stream:
    """Work of a device that is done in order while the program goes on; streams do not wait for each other.

    ``kernel[grid, block, stream](...)`` adds a launch and returns a :class:`Pending`. What is wrong with the arguments is
    raised there; faults are raised by :meth:`synchronize`, or by whoever asks that launch for its result first. Until then,
    work that follows in the stream is not done.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._lock = new_lock()
        self._process = os.getpid()
        self._waiting: deque[Pending[Any]] = deque()
        self._current: Pending[Any] | None = None
        self._thread: threading.Thread | None = None
        self._failed: BaseException | None = None
        _streams.add(self)

    @property
    def idle(self) -> bool:
        """Whether all of its work is done."""
        with self._held():
            return self._thread is None

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all work is done, ``timeout`` in seconds. Ctrl-C stops the work.

        Raises the first fault, or whatever else the work has failed with, unless that has been raised before; the stream can
        be used again then. ``TimeoutError``: it goes on.
        """
        try:
            ended = wait_for([self.record()._future], timeout).done
        except BaseException:
            self.cancel()
            raise
        if not ended:
            raise TimeoutError(f"the stream is not done after {timeout:g} s")
        with self._held():
            failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def record(self) -> Event:
        """An event behind the work that the stream has now."""
        event = Event(self, "event", lambda stop: time.monotonic())
        self._add(event)
        return event

    def wait(self, event: Event) -> None:
        """Let the work that comes later begin when an event, of another stream as a rule, is done."""
        if not isinstance(event, Event):
            raise InputError(f"a stream waits for an event, not for {shown(event)}")
        self._add(Pending(self, "wait", partial(_await_event, event)))

    def call(self, function: Callable[..., Result], *arguments: object) -> Pending[Result]:
        """Call a function in the order of the stream, on its thread: ``stream.call(buffer.copy_from_host, array)``."""
        if not callable(function):
            raise InputError(f"a stream calls functions, not {shown(function)}")
        return self.add(getattr(function, "__name__", "function"), lambda stop: function(*arguments))

    def cancel(self) -> None:
        """Stop what runs and drop what waits; returns at once. Events are reached all the same."""
        with self._held():
            for work in (*self._waiting, self._current):
                if work is not None and not isinstance(work, Event):
                    work.cancel()

    def add(self, name: str, action: Callable[[Stop], Result]) -> Pending[Result]:
        """Work that runs until it ends or sees that it is to stop; then it raises ``CancelledError``."""
        work = Pending(self, name, action)
        self._add(work)
        return work

    def _add(self, work: Pending[Any]) -> None:
        with self._held():
            if _ending:
                raise InputError("the interpreter is ending")
            self._waiting.append(work)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="ptxemu-stream", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    self._waiting.pop()
                    raise Error(f"cannot start a thread for a stream: {error}") from None
                self._thread = thread

    def _work(self) -> None:
        """Do what waits, until nothing does."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = self._current = None
                    return
                work = self._current = self._waiting.popleft()
            work._perform()
            del work

    def _tell(self, error: BaseException) -> None:
        """The program has seen an error."""
        with self._held():
            if self._failed is error or self._failed is error.__cause__:
                self._failed = None

    def _held(self) -> threading.RLock:
        """The lock; in a forked child, all that was waiting is the parent's."""
        if os.getpid() != self._process:
            self._process = os.getpid()
            self._waiting = deque()
            self._current = self._thread = self._failed = None
        return self._lock

    def close(self) -> None:
        """Stop the work, and wait until it has ended."""
        self.cancel()
        with self._held():
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def _report(self) -> None:
        if self._failed is not None and os.getpid() == self._process:
            with suppress(Exception):
                print(f"ptxemu: a stream has failed, and nobody has asked: {self._failed}", file=sys.stderr)

    def __del__(self) -> None:
        self._report()


def _await_event(event: Event, stop: Stop) -> None:
    while not event.done:
        if stop.is_set():
            raise CancelledError
        wait_for([event._future], MOMENT)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
_ending = False


@atexit.register
def _end_all() -> None:
    global _ending
    _ending = True
    for stream in list(_streams):
        stream.close()
        stream._report()
