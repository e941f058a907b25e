"""The server: one process for each program that it was asked for, and a deadline for every answer."""

from __future__ import annotations

import hashlib
import os
import re
import socket
import time
from contextlib import suppress
from functools import partial
from select import select

from ptxemu.cache import Cache
from ptxemu.device.code import KernelCode
from ptxemu.device.entry import KERNEL
from ptxemu.driver import symbols
from ptxemu.serve.child import Child
from ptxemu.serve.found import Found
from ptxemu.serve.protocol import Channel, ProtocolError
from ptxemu.serve.worker import FAILED, INVALID, OK, Answer, Worker, guarded

DEADLINE = 120.0  # seconds
DEADLINE_VARIABLE = "PTXEMU_COMPILE_TIMEOUT"
MOST_WORKERS = 8
MAX_BLOCK = 1024
FIELDS = {b"load": 4, b"code": 6, b"found": 6, b"report": 3, b"placed": 4}
"""Of a request: the verb, the architecture, the image, the key of the image's entry; and a kernel and its block, or what was
found in it. Of a report: what was checked, and what else was found. Of code that is placed: its key, the kernel, an address."""
KEY = re.compile(rb"[0-9a-f]{64}")
ADDRESS = re.compile(rb"[0-9]{1,20}")


class Gone(Exception):
    """The program has ended."""


class Server:
    """Answers the requests of one program, in their order."""

    def __init__(self, client: Channel, cache: Cache, deadline: float) -> None:
        self.client = client
        self.cache = cache
        self.deadline = deadline
        self.workers: dict[bytes, Child] = {}  # the one that was used last is the last
        self.found: list[Found] = []

    def run(self) -> None:
        """Until the program ends, or sends something that is not a message."""
        with suppress(Gone, ProtocolError, ConnectionError):
            while (request := self.client.receive()) is not None:
                self.client.send(self.answer(request))
        for child in self.workers.values():
            child.end()

    def answer(self, request: list[bytes]) -> Answer:
        if problem := wrong(request):
            return [INVALID, problem.encode()]
        if request[0] == b"report":
            return self._report(*request[1:])
        if request[0] == b"placed":
            return guarded(partial(self._placed, *request[1:]))
        verb, arch, image, entry, *rest = request
        if verb == b"found":
            self.found.append(Found(image, int(arch), rest[0].decode("utf-8", "replace"), rest[1]))
            return [OK, b""]
        key = hashlib.sha256(b"\0".join((arch, entry, image))).digest()
        child = self.workers.pop(key, None) or self._forked(image, int(arch), entry.decode())
        self.workers[key] = child
        try:
            child.channel.send([verb, *rest])
            answer = self._awaited(child)
        except (ProtocolError, ConnectionError):
            answer = None
        if answer is None:
            answer = [FAILED, f"the compiler of the module {self.workers.pop(key).died()}".encode()]
        return answer

    def _placed(self, key: bytes, kernel: bytes, section: bytes) -> Answer:
        """Tell perf of code in the program."""
        code = KernelCode.from_entry(self.cache.get(key.decode(), KERNEL))
        if code is None:
            return [FAILED, b"the code is not in the cache any more"]
        name = kernel.decode("utf-8", "replace")
        symbols.tell_perf(code.object, code.symbol, int(section), name, os.getppid())
        return [OK, b""]

    def _report(self, checked: bytes, rest: bytes) -> Answer:
        """Tell what was found, in a process of its own, as the programs may be anything."""
        program = os.getppid()

        def told(channel: Channel) -> None:
            from ptxemu.serve.findings import tell

            channel.send(guarded(lambda: [OK, b"%d" % tell(self.found, rest, checked, os.environ, program)]))

        child = Child(told)
        answer = self._awaited(child)
        return answer or [FAILED, f"the process that tells of findings {child.died()}".encode()]

    def _forked(self, image: bytes, arch: int, entry: str) -> Child:
        while len(self.workers) >= MOST_WORKERS:
            self.workers.pop(next(iter(self.workers))).end()
        return Child(partial(self._work, image, arch, entry))

    def _work(self, image: bytes, arch: int, entry: str, channel: Channel) -> None:
        """The life of a worker, in its process."""
        self.client.close()
        workers: list[Worker] = []

        def opened() -> Answer:
            workers.append(Worker(channel, image, arch, entry, self.cache))
            return []

        refused = guarded(opened)
        while refused and channel.receive() is not None:
            channel.send(refused)
        for worker in workers:
            worker.run()

    def _awaited(self, child: Child) -> Answer | None:
        """A worker's answer, None if it died. Raises Gone."""
        until = time.monotonic() + self.deadline
        watched: list[Channel | Child] = [child, self.client]
        while True:
            ready = select(watched, [], [], max(0.0, until - time.monotonic()))[0]
            if child in ready:
                return child.channel.receive()
            if self.client in ready:
                if not self.client.socket.recv(1, socket.MSG_PEEK):
                    raise Gone
                raise ProtocolError("a request before the answer to the last one")
            if time.monotonic() >= until:
                return self._too_late(child)

    def _too_late(self, child: Child) -> Answer:
        self.workers = {key: other for key, other in self.workers.items() if other is not child}
        child.end()
        return [FAILED, f"compilation took more than {self.deadline:g} s ({DEADLINE_VARIABLE} sets the limit)".encode()]


def wrong(request: list[bytes]) -> str:
    """What is wrong with a request, or nothing."""
    verb = request[0] if request else b""
    if len(request) != FIELDS.get(verb, -1):
        return f"no request is '{verb[:16].decode('ascii', 'replace')}' with {len(request)} fields"
    if verb == b"report":
        return ""
    if verb == b"placed":
        return "" if KEY.fullmatch(request[1]) and ADDRESS.fullmatch(request[3]) else "a key or an address is none"
    if not (request[1].isdigit() and len(request[1]) <= 3):
        return "an architecture is a number such as 80"
    if not KEY.fullmatch(request[3]):
        return "a key is 64 digits of base 16"
    if verb == b"code":
        extents = request[5].split(b",")
        if len(extents) != 3 or not all(part.isdigit() and len(part) <= 4 and 0 < int(part) <= MAX_BLOCK for part in extents):
            return "a block has three extents, at least 1 each"
    return ""


def deadline_from_environment() -> float:
    given = os.environ.get(DEADLINE_VARIABLE, "")
    try:
        seconds = float(given or DEADLINE)
    except ValueError:
        return DEADLINE
    return seconds if 0 < seconds < 1e6 else DEADLINE
