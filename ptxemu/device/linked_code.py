"""Machine code in memory, ready to run."""

from __future__ import annotations

from ptxemu._runtime import ffi, lib


class LinkError(Exception):
    """Bytes that are not an object of this machine's kind, or refer to symbols that the runtime does not have."""


class LinkedCode:
    """An object linked against the runtime's own functions. ``address`` is where it starts, ``section`` where the section begins
    that this is in, as long as this object lives."""

    __slots__ = ("_code", "address", "section")

    def __init__(self, data: bytes, symbol: str) -> None:
        made, problem = ffi.new("pe_code **"), ffi.new("char **")
        if lib.pe_code_link(data, len(data), symbol.encode(), made, problem):
            raise LinkError(f"the object {ffi.string(problem[0]).decode()}")
        self._code = ffi.gc(made[0], lib.pe_code_release)
        self.address = int(lib.pe_code_address(made[0]))
        self.section = int(lib.pe_code_section(made[0]))
