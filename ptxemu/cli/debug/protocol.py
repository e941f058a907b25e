"""Messages of the Debug Adapter Protocol: JSON behind a header that tells its length.

https://microsoft.github.io/debug-adapter-protocol/overview, "Base Protocol".
"""

from __future__ import annotations

import json
import queue
import re
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from ptxemu.text.errors import InputError

LENGTH = re.compile(rb"content-length:\s*([0-9]{1,9})\s*", re.IGNORECASE)
MOST_BYTES = 16 << 20  # of a message
MOST_HEADER = 4096
MOST_WAITING = 10_000  # messages

Message = dict[str, Any]


def read_message(stream: BinaryIO) -> Message | None:
    """The next message; None at the end. Raises InputError for what is none."""
    length = None
    while line := stream.readline(MOST_HEADER):
        if line in (b"\r\n", b"\n"):
            break
        if found := LENGTH.fullmatch(line.strip()):
            length = int(found[1])
    else:
        return None
    if length is None or length > MOST_BYTES:
        raise InputError("a message has no length, or one beyond 16 MiB")
    try:
        message = json.loads(stream.read(length))
    except (ValueError, RecursionError):
        raise InputError("a message is not JSON") from None
    if not isinstance(message, dict):
        raise InputError("a message is not an object")
    return message


class Connection:
    """Sends messages, and reads those of the client on a thread of its own; ``arrived`` is called there for each."""

    def __init__(self, source: BinaryIO, target: BinaryIO, arrived: Callable[[], None]) -> None:
        self._source, self._target, self._arrived = source, target, arrived
        self._queue: queue.Queue[Message | None] = queue.Queue(MOST_WAITING)
        self._sent = 0
        self.gone = False  # the client has, and all that it asked has been taken
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, wait: bool = True) -> Message | None:
        """The next request; None if the client has gone, or, without ``wait``, if there is none yet."""
        if self.gone:
            return None
        try:
            message = self._queue.get(block=wait)
        except queue.Empty:
            return None
        self.gone = message is None
        return message

    def send(self, kind: str, **fields: Any) -> None:
        self._sent += 1
        data = json.dumps({"seq": self._sent, "type": kind, **fields}, default=str).encode()
        self._target.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self._target.flush()

    def event(self, name: str, **body: Any) -> None:
        self.send("event", event=name, body=body)

    def answer(self, request: Message, body: object = None, error: str = "") -> None:
        fields = {"message": error} if error else {"body": {} if body is None else body}
        seq, command = request.get("seq", 0), request.get("command", "")
        self.send("response", request_seq=seq, command=command, success=not error, **fields)

    def _read(self) -> None:
        message: Message | None = {}
        while message is not None:
            try:
                message = read_message(self._source)
            except (InputError, OSError, ValueError):
                message = None
            self._queue.put(message)
            self._arrived()
