"""A process that holds one program, answers what is asked of it, and has its kernels compiled by processes of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from select import select
from typing import NamedTuple

from ptxemu._runtime import lib
from ptxemu.cache import Cache
from ptxemu.checkers.kinds import observed_of, parse_checks
from ptxemu.device.launch_limits import Extent
from ptxemu.driver.device_runtime import with_device_runtime
from ptxemu.driver.program import Program, Settings, checked_tier
from ptxemu.images.fatbin import texts_of
from ptxemu.ir.block_shape import variant_of
from ptxemu.ir.numerics import checked_like
from ptxemu.serve.child import Child
from ptxemu.serve.protocol import Channel
from ptxemu.text.errors import Error, InputError, PtxError, UnsupportedError, summary_of
from ptxemu.text.source import SourceFile, join

Answer = list[bytes]
OK, INVALID, UNSUPPORTED, FAILED = b"ok", b"invalid", b"unsupported", b"failed"
COMMON_BLOCK: Extent = (lib.PE_COMMON_BLOCK, 1, 1)
MOST_AHEAD = 32  # kernels; a module that has more is a library, of which a program uses a few
BACKGROUND = 10  # niceness
LIKE = "PTXEMU_LIKE"
"""What programs compute where PTX leaves bits open, as ``Device(like=...)`` says it."""
CHECK = "PTXEMU_CHECK"
"""The names of the checkers that watch the program."""


class Wanted(NamedTuple):
    """Code of a kernel for the variant of a block; ``best``: not code that is quickly made."""

    kernel: str
    block: Extent
    best: bool = False

    @property
    def key(self) -> tuple[str, str, bool]:
        return self.kernel, variant_of(self.block), self.best


def guarded(answer: Callable[[], Answer]) -> Answer:
    """What a function answers, or the answer that its error is."""
    try:
        return answer()
    except UnsupportedError as error:
        return [UNSUPPORTED, _text(error)]
    except (PtxError, InputError) as error:
        return [INVALID, _text(error)]
    except MemoryError:
        return [FAILED, b"the compiler ran out of memory"]
    except Error as error:
        return [FAILED, _text(error)]
    except Exception as error:
        return [FAILED, f"internal error: {summary_of(error)}".encode()]


def _text(error: BaseException) -> bytes:
    return str(error).encode("utf-8", "replace")


class Worker:
    """The process of one program. One request at a time; compilations go on beside it."""

    def __init__(self, channel: Channel, image: bytes, arch: int, key: str, cache: Cache) -> None:
        self.channel = channel
        self.key = key
        self.cache = cache
        texts, self.left_out = texts_of(image, arch)
        self.source = join(with_device_runtime([SourceFile(name, text) for name, text in texts.items()]))
        like, checks = os.environ.get(LIKE, ""), parse_checks(os.environ.get(CHECK, ""))
        settings = Settings(like=checked_like(like), observed=observed_of(checks), tier=checked_tier(None))
        self.program = Program(self.source, settings, cache)
        self.waiting: tuple[str, str, bool] | None = None
        self.running: dict[tuple[str, str, bool], tuple[Wanted, Child]] = {}
        self.queue: deque[Wanted] = deque()

    def load(self) -> Answer:
        """Describe the module, and begin to compile its kernels."""
        try:
            kernels = self.program.info.kernels
        except PtxError as error:
            if not self.left_out:
                raise
            raise InputError("\n".join([str(error), *self.left_out])) from None
        self.cache.put(self.key, lib.PE_ENTRY_BYTES, self.program.identity.encode())
        missing = [name for name in kernels if not self.program.is_cached(name, COMMON_BLOCK)]
        if len(kernels) <= MOST_AHEAD:
            self.queue.extend(Wanted(name, COMMON_BLOCK) for name in missing)
        return [OK, self.program.identity.encode()]

    def code(self, wanted: Wanted) -> Answer | None:
        """Have code made; None: the answer comes later."""
        if wanted.kernel not in self.program.info.kernels:
            return [INVALID, f"the module has no kernel '{wanted.kernel}'".encode()]
        if wanted.key not in self.running:
            if self.program.is_cached(wanted.kernel, wanted.block):
                return [OK, self.program.identity.encode()]
            self.queue = deque(other for other in self.queue if other.key != wanted.key)
            self._start(wanted)
        self.waiting = wanted.key
        return None

    def run(self) -> None:
        """Serve until the other end is closed."""
        while True:
            self._fill()
            watched: list[Channel | Child] = [self.channel, *(child for _, child in self.running.values())]
            ready = select(watched, [], [])[0]
            for wanted, child in list(self.running.values()):
                if child in ready:
                    self._finish(wanted, child)
            if self.channel in ready:
                request = self.channel.receive()
                if request is None:
                    return
                answer = guarded(partial(self._answer, request))
                if answer:
                    self.channel.send(answer)

    def _answer(self, request: list[bytes]) -> Answer:
        verb, *rest = request
        if verb == b"load":
            return self.load()
        kernel, block = rest
        x, y, z = map(int, block.split(b","))
        return self.code(Wanted(kernel.decode("utf-8", "replace"), (x, y, z))) or []

    def _fill(self) -> None:
        """Start what waits, as many as there are CPUs."""
        if self.queue:
            _ = self.program.ir  # parsed once, and not by each process
        while self.queue and len(self.running) < len(os.sched_getaffinity(0)):
            self._start(self.queue.popleft())

    def _start(self, wanted: Wanted) -> None:
        _ = self.program.ir
        self.running[wanted.key] = wanted, Child(partial(self._compile, wanted), BACKGROUND if wanted.best else 0)

    def _compile(self, wanted: Wanted, channel: Channel) -> None:
        """In a process of its own."""
        self.channel.close()

        def made() -> Answer:
            code = self.program.best_code if wanted.best else self.program.code
            final = code(wanted.kernel, wanted.block).final
            return [OK, self.program.identity.encode(), b"final" if final else b"fast"]

        channel.send(guarded(made))

    def _finish(self, wanted: Wanted, child: Child) -> None:
        """A process has answered or died."""
        del self.running[wanted.key]
        answer = child.channel.receive()
        how = child.died()
        answer = answer or [FAILED, f"the process that compiled kernel '{wanted.kernel}' {how}".encode()]
        if answer[2:] == [b"fast"] and self.program.settings.tier == "auto":
            self.queue.append(wanted._replace(best=True))
        if self.waiting == wanted.key:
            self.waiting = None
            self.channel.send(answer[:2])
