"""Messages between a program and the compile server: a header, then fields, each with its length.

Little-endian: ``MAGIC``, the number of fields (u32), then for each its length (u64) and its bytes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

MAGIC = b"PES1"
HEAD = struct.Struct("<4sI")
LENGTH = struct.Struct("<Q")
MAX_FIELDS = 16
MAX_BYTES = 1 << 30
CHUNK = 1 << 20


class ProtocolError(Exception):
    """Bytes that are not a message; nothing that follows them can be read."""


class Channel:
    """A stream socket that carries messages."""

    def __init__(self, stream: socket.socket) -> None:
        self.socket = stream

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, fields: Sequence[bytes]) -> None:
        parts = [HEAD.pack(MAGIC, len(fields))]
        for field in fields:
            parts += (LENGTH.pack(len(field)), field)
        self.socket.sendall(b"".join(parts))

    def receive(self) -> list[bytes] | None:
        """The next message, or None at the end of the stream. Raises ProtocolError."""
        first = self.socket.recv(HEAD.size)
        if not first:
            return None
        magic, count = HEAD.unpack(first + self._exactly(HEAD.size - len(first)))
        if magic != MAGIC or count > MAX_FIELDS:
            raise ProtocolError("this is not a ptxemu message")
        fields, room = [], MAX_BYTES
        for _ in range(count):
            (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
            if length > room:
                raise ProtocolError(f"a message is larger than {MAX_BYTES} bytes")
            room -= length
            fields.append(self._exactly(length))
        return fields

    def _exactly(self, size: int) -> bytes:
        """So many bytes; memory is taken as they come, not as they are announced."""
        data = bytearray()
        while len(data) < size:
            more = self.socket.recv(min(CHUNK, size - len(data)))
            if not more:
                raise ProtocolError("a message is cut off")
            data += more
        return bytes(data)

    def close(self) -> None:
        self.socket.close()
