"""Entries: what the compile side leaves for the launch side, as flat, checked bytes (``csrc/host/entry.h``)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ptxemu._runtime import ffi, lib

if TYPE_CHECKING:
    from ptxemu._runtime import CData

MODULE, KERNEL, BYTES = lib.PE_ENTRY_MODULE, lib.PE_ENTRY_KERNEL, lib.PE_ENTRY_BYTES
MAGIC = b"PTXEMU\0" + bytes([lib.PE_ENTRY_VERSION])
HEAD = struct.Struct("<8sII")
TABLE_BYTES = ffi.sizeof("pe_entry_head") - HEAD.size
ALIGNMENT = 8
RECORDS: dict[int, str] = {
    lib.PE_SECTION_TEXT: "char",
    lib.PE_SECTION_MODULE: "pe_module_facts",
    lib.PE_SECTION_KERNELS: "pe_kernel_facts",
    lib.PE_SECTION_PARAMETERS: "pe_parameter_facts",
    lib.PE_SECTION_LIMITS: "pe_limit_facts",
    lib.PE_SECTION_USES: "pe_use_facts",
    lib.PE_SECTION_PAIRS: "pe_pair_facts",
    lib.PE_SECTION_VARIABLES: "pe_variable_facts",
    lib.PE_SECTION_EXTENTS: "uint64_t",
    lib.PE_SECTION_HANDLES: "pe_handle_facts",
    lib.PE_SECTION_FIELDS: "pe_field_facts",
    lib.PE_SECTION_RELOCATIONS: "pe_relocation_facts",
    lib.PE_SECTION_CONTENTS: "pe_contents_facts",
    lib.PE_SECTION_BYTES: "uint8_t",
    lib.PE_SECTION_FILES: "pe_file_facts",
    lib.PE_SECTION_LINES: "uint32_t",
    lib.PE_SECTION_CODE: "pe_code_facts",
    lib.PE_SECTION_OBJECT: "uint8_t",
}


class Writer:
    """The sections of an entry in the making."""

    def __init__(self) -> None:
        self._records: dict[int, list[Any]] = {}
        self._bytes: dict[int, bytearray] = {lib.PE_SECTION_TEXT: bytearray()}
        self._texts: dict[str, int] = {}

    def text(self, text: str | None) -> int:
        """How records name a text; None is none."""
        if text is None:
            return int(lib.PE_NO_TEXT)
        if text not in self._texts:
            self._texts[text] = self.data(lib.PE_SECTION_TEXT, text.encode("utf-8", "replace") + b"\0")
        return self._texts[text]

    def data(self, section: int, data: bytes) -> int:
        """Append bytes to a section of bytes; where they start."""
        found = self._bytes.setdefault(section, bytearray())
        start = len(found)
        found += data
        return start

    def add(self, section: int, record: dict[str, Any] | int) -> None:
        """Append a record."""
        self._records.setdefault(section, []).append(record)

    def count(self, section: int) -> int:
        """How many records there are."""
        return len(self._records.get(section, ()))

    def body(self) -> bytes:
        """All sections behind their table."""
        table, body = ffi.new("pe_section[]", lib.PE_SECTIONS), bytearray()
        for section in range(lib.PE_SECTIONS):
            data = self._section(section)
            table[section].offset, table[section].size = HEAD.size + TABLE_BYTES + len(body), len(data)
            body += data + bytes(-len(data) % ALIGNMENT)
        return bytes(ffi.buffer(table)) + bytes(body)

    def _section(self, section: int) -> bytes:
        if section in self._bytes:
            return bytes(self._bytes[section])
        records = self._records.get(section)
        return bytes(ffi.buffer(ffi.new(f"{RECORDS[section]}[]", records))) if records else b""


class Entry:
    """An entry that has been checked."""

    __slots__ = ("pointer",)

    def __init__(self, pointer: CData) -> None:
        self.pointer = pointer

    def records(self, section: int) -> Iterator[Any]:
        """The records of a section, which are there as long as this object."""
        count = ffi.new("uint64_t *")
        first = ffi.cast(f"{RECORDS[section]} *", lib.pe_entry_section(self.pointer, section, count))
        return (first[index] for index in range(count[0]))

    def data(self, section: int) -> bytes:
        """A section of bytes."""
        count = ffi.new("uint64_t *")
        first = lib.pe_entry_section(self.pointer, section, count)
        return bytes(ffi.buffer(first, count[0] * ffi.sizeof(RECORDS[section])))

    @property
    def bytes(self) -> bytes:
        """What an entry of BYTES holds."""
        size = ffi.new("uint64_t *")
        first = lib.pe_entry_bytes(self.pointer, size)
        return bytes(ffi.buffer(first, size[0]))

    def text(self, name: int) -> str:
        """A text that a record names."""
        return ffi.string(lib.pe_entry_text(self.pointer, name)).decode("utf-8", "replace")  # type: ignore[no-any-return]


def sealed(key: str, kind: int, body: bytes) -> bytes:
    """The bytes of an entry: with sections, or any bytes for BYTES."""
    data = HEAD.pack(MAGIC, kind, 0 if kind == BYTES else lib.PE_SECTIONS) + body
    digest = hashlib.sha256(key.encode() + b"\0")
    digest.update(data)
    return data + digest.digest()


def opened(key: str, kind: int, data: bytes) -> Entry | None:
    """The entry of a key and kind in some bytes, or None where they are damaged or another's."""
    found = ffi.new("pe_entry **")
    if lib.pe_entry_open(data, len(data), key.encode(), kind, found):
        return None
    return Entry(ffi.gc(found[0], lib.pe_entry_release))
