"""What the background compiler is asked for."""

from __future__ import annotations

import json
import struct
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ptxemu.device.entry import BYTES, opened, sealed
from ptxemu.device.launch_limits import Extent

KEY = "request"
LENGTH = struct.Struct("<I")


class Request(Struct, frozen=True):
    """A kernel and a block of its variant, in a text: that of several files, each with its name and length."""

    settings: dict[str, Any]
    files: list[tuple[str, int]]
    kernel: str
    block: Extent
    text: str

    def encode(self) -> bytes:
        facts = asdict(self)
        text = facts.pop("text").encode("utf-8", "surrogatepass")
        head = json.dumps(facts).encode()
        return sealed(KEY, BYTES, LENGTH.pack(len(head)) + head + text)

    @classmethod
    def decode(cls, data: bytes) -> Request:
        """The inverse."""
        entry = opened(KEY, BYTES, data)
        assert entry is not None
        (size,) = LENGTH.unpack_from(entry.bytes)
        facts = json.loads(entry.bytes[LENGTH.size : LENGTH.size + size])
        return cls(**facts, text=entry.bytes[LENGTH.size + size :].decode("utf-8", "surrogatepass"))
