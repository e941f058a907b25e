"""Processes that the server forks: each with a channel to its parent, bounds, and no life beyond it."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from collections.abc import Callable

from ptxemu.serve.protocol import Channel

MEMORY_BYTES = 4 << 30
PR_SET_PDEATHSIG = 1


class Child:
    """A forked process that runs ``body`` on its end of a channel. ``nice`` is added to its niceness."""

    def __init__(self, body: Callable[[Channel], None], nice: int = 0) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            _run(body, Channel(theirs), parent, nice)
        theirs.close()
        self.channel = Channel(ours)

    def fileno(self) -> int:
        return self.channel.fileno()

    def end(self) -> str:
        """Kill the process if it still runs, and say how it ended."""
        os.kill(self.pid, signal.SIGKILL)  # it is ours until we have waited for it
        self.channel.close()
        return _ending(os.waitpid(self.pid, 0)[1])

    def died(self) -> str:
        """How a process ended that has closed its channel."""
        status = os.waitpid(self.pid, 0)[1]
        self.channel.close()
        return _ending(status)


def _run(body: Callable[[Channel], None], channel: Channel, parent: int, nice: int) -> None:
    """The life of a child. Does not return."""
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        os.nice(nice)
        if os.getppid() == parent:
            body(channel)
    finally:
        os._exit(0)


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return "ended without an answer"
