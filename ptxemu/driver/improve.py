"""Better code for kernels that already run: requests to the background compiler, one at a time.

Nothing that goes wrong here is an error of the program: its kernels keep the code that they have.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import re
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from ptxemu.device.code import KernelCode
from ptxemu.device.entry import KERNEL, opened
from ptxemu.driver.request import Request
from ptxemu.process.locks import new_lock

SCRIPT = Path(__file__).with_name("background.py")
ANSWER = "answer"
PYTHON = re.compile(r"(python|pypy)[\d.]*(\.exe)?", re.I)

Deliver = Callable[[KernelCode | None], None]
"""Takes the answer, or None if there is none and will be none: it took too much time or memory."""


class _Compiler:
    """One thread that runs one process after the other."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[tuple[Request, Deliver]] = queue.SimpleQueue()
        self.process: subprocess.Popen[bytes] | None = None
        self.thread: threading.Thread | None = None

    def submit(self, request: Request, deliver: Deliver) -> None:
        self.requests.put((request, deliver))
        if self.thread is None:
            # the process ends with the thread that started it, so this one lives as long as the program
            self.thread = threading.Thread(target=self.run, name="ptxemu-background", daemon=True)
            self.thread.start()

    def run(self) -> None:
        while True:
            request, deliver = self.requests.get()
            try:
                self.serve(request, deliver)
            except Exception:  # no rights to start a process, no memory, no files ...
                continue

    def serve(self, request: Request, deliver: Deliver) -> None:
        data = request.encode()
        with subprocess.Popen(
            [sys.executable, "-I", str(SCRIPT), str(os.getpid()), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the program
        ) as process:
            self.process = process
            try:
                assert process.stdin is not None and process.stdout is not None
                process.stdin.write(struct.pack("<Q", len(data)) + data)
                process.stdin.flush()
                answer = KernelCode.from_entry(opened(ANSWER, KERNEL, process.stdout.read()))
            finally:
                process.kill()
                self.process = None
        if answer is not None or process.returncode != -signal.SIGKILL:
            deliver(answer)

    def stop(self) -> None:
        """The program ends."""
        process = self.process
        if process is not None:
            process.kill()


_lock = new_lock()
_compiler = _Compiler()


def possible() -> bool:
    """Whether ``sys.executable`` is an interpreter; a program that embeds Python may name itself there."""
    name = os.path.basename(sys.executable or "")
    return SCRIPT.is_file() and not getattr(sys, "frozen", False) and PYTHON.fullmatch(name) is not None


def improve(request: Request, deliver: Deliver) -> None:
    """Compile in the background; ``deliver`` is called once, in another thread, or never."""
    if not possible():
        return
    try:
        with _lock:
            _compiler.submit(request, deliver)
    except RuntimeError:  # the system allows no more threads
        return


def _after_fork() -> None:
    """The thread and the process are the parent's."""
    global _compiler
    _compiler = _Compiler()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(lambda: _compiler.stop())
