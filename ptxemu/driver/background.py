"""The background compiler: a process that makes the best code of one kernel, for a program that runs faster made code.

It is started by ``improve.py`` as a script, with the parent's process id and module path as arguments. It reads a request
from stdin, writes the code to stdout, and ends when the other end of stdin is closed. It prints nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptxemu.device.code import KernelCode
    from ptxemu.driver.request import Request

CPU_SECONDS = 120
MEMORY_BYTES = 2 << 30
NICENESS = 10
PR_SET_PDEATHSIG = 1


def restrict(parent: int) -> None:
    """Bound what the process may take, and end it with its parent."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def read_request() -> bytes:
    """The request, which follows its length. From then on the end of stdin ends the process."""
    (size,) = struct.unpack("<Q", sys.stdin.buffer.read(8))
    data = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    return data


def _end_with_stdin() -> None:
    os.read(0, 1)
    os._exit(1)


def answer(request: Request) -> KernelCode:
    """The best code of the kernel that a request names."""
    from ptxemu.driver import compile, lowering
    from ptxemu.driver.program import Settings
    from ptxemu.text.source import SourceFile, join

    settings, parts, start = Settings.from_json(request.settings), [], 0
    for name, length in request.files:
        parts.append(SourceFile(name, request.text[start : start + length]))
        start += length
    module = compile.front_of(join(parts), settings.strict, settings.dialect, dict(settings.options), settings.like)
    options = lowering.Options(opt=settings.opt, observed=settings.observed)
    x, y, z = request.block
    return compile.kernel(module, request.kernel, options, (x, y, z))


def main(parent: str, path: str) -> None:
    restrict(int(parent))
    sys.path[:] = json.loads(path)
    from ptxemu.device.entry import KERNEL, sealed
    from ptxemu.driver.improve import ANSWER
    from ptxemu.driver.request import Request

    request = Request.decode(read_request())
    sys.stdout.buffer.write(sealed(ANSWER, KERNEL, answer(request).body))
    sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
