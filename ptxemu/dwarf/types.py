"""Types of variables: what their entries say of names, sizes and parts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxemu.dwarf.entries import Entry
from ptxemu.dwarf.info import LONGEST_CHAIN, DebugInfo
from ptxemu.dwarf.names import At, Op, Tag
from ptxemu.dwarf.stream import DwarfError, Stream

POINTER_BYTES = 8
MOST_BYTES = 1 << 40  # of a type that can be
BASE = "__b_"  # what nvcc's names of members that are bases begin with
QUALIFIERS: dict[int, str] = {
    Tag.CONST_TYPE: "const", Tag.VOLATILE_TYPE: "volatile", Tag.RESTRICT_TYPE: "__restrict__", Tag.ATOMIC_TYPE: "_Atomic",
}  # fmt: skip
REFERENCES: dict[int, str] = {Tag.REFERENCE_TYPE: "&", Tag.RVALUE_REFERENCE_TYPE: "&&"}
POINTERS: dict[int, str] = {Tag.POINTER_TYPE: "*", **REFERENCES}
RECORDS: dict[int, str] = {Tag.STRUCTURE_TYPE: "struct", Tag.CLASS_TYPE: "class", Tag.UNION_TYPE: "union"}


class Member(Struct, frozen=True):
    """``bits`` are the first bit and the number of them, of a bit field."""

    name: str
    offset: int
    type: Type
    bits: tuple[int, int] | None = None


class Type(Struct, frozen=True):
    """A type by its entry; None is void. ``rows`` are dimensions of an array that indexing has left behind."""

    info: DebugInfo
    entry: Entry | None
    rows: int = 0

    @property
    def plain(self) -> Type:
        """Without typedefs and qualifiers."""
        found = self
        for _ in range(LONGEST_CHAIN):
            if found.tag != Tag.TYPEDEF and found.tag not in QUALIFIERS:
                return found
            found = found.target
        raise DwarfError("a type is made of itself")

    @property
    def tag(self) -> int:
        return 0 if self.entry is None else self.entry.tag

    @property
    def target(self) -> Type:
        """What it points to, consists of, or is another name of."""
        return Type(self.info, None if self.entry is None else self.info.type(self.entry))

    @property
    def counts(self) -> list[int]:
        """The extents of an array."""
        assert self.entry is not None
        return [_count(child) for child in self.entry.children if child.tag == Tag.SUBRANGE_TYPE][self.rows :]

    @property
    def element(self) -> Type:
        """What an array consists of by its first extent: rows of one less, or elements."""
        return Type(self.info, self.entry, self.rows + 1) if len(self.counts) > 1 else self.target

    @property
    def size(self) -> int:
        """In bytes. Raises DwarfError if that is not known."""
        found, factor = self, 1
        for _ in range(LONGEST_CHAIN):
            found = found.plain
            if found.tag != Tag.ARRAY_TYPE:
                break
            for count in found.counts:
                factor *= count
            found = found.target
        own = None if found.entry is None else found.entry.number(At.BYTE_SIZE)
        if own is None:
            own = POINTER_BYTES if found.tag in POINTERS else None
        if own is None or found.tag == Tag.ARRAY_TYPE or not 0 <= factor * own <= MOST_BYTES:
            raise DwarfError(f"the size of {self} is not known")
        return factor * own

    @property
    def members(self) -> Iterator[Member]:
        """Those of a struct, a class or a union, those of its bases first."""
        assert self.entry is not None
        for child in self.entry.children:
            if child.tag in (Tag.MEMBER, Tag.INHERITANCE) and At.EXTERNAL not in child.attributes:
                kind = Type(self.info, self.info.type(child))
                name = self.info.name(child)
                is_base = child.tag == Tag.INHERITANCE or name.startswith(BASE)
                yield Member(f"<{kind}>" if is_base else name, _offset(child), kind, _bits(child, kind))

    @property
    def values(self) -> Iterator[tuple[str, int]]:
        """Those of an enumeration."""
        for child in self.entry.children if self.entry is not None else ():
            if (value := child.number(At.CONST_VALUE)) is not None:
                yield self.info.name(child), value

    def __str__(self) -> str:
        return self._text(LONGEST_CHAIN)

    def _text(self, depth: int) -> str:
        """As C++ writes it."""
        if self.entry is None or not depth:
            return "void" if depth else "..."
        name, target = self.info.name(self.entry), self.target
        if self.tag in POINTERS:
            text = target._text(depth - 1)
            return f"{text}{'' if text[-1] in '*&' else ' '}{POINTERS[self.tag]}"
        if self.tag in QUALIFIERS:
            word, text = QUALIFIERS[self.tag], target._text(depth - 1)
            return f"{text} {word}" if target.tag in POINTERS else f"{word} {text}"
        if self.tag == Tag.ARRAY_TYPE:
            text, _, inner = target._text(depth - 1).partition("[")
            return text.rstrip() + " " + "".join(f"[{count or ''}]" for count in self.counts) + (inner and "[" + inner)
        return name or f"{RECORDS.get(self.tag, 'enum')} {{...}}"


def _count(subrange: Entry) -> int:
    count, bound = subrange.number(At.COUNT), subrange.number(At.UPPER_BOUND)
    found = count if count is not None else 0 if bound is None else bound + 1
    return found if 0 <= found <= MOST_BYTES else 0


def _offset(member: Entry) -> int:
    """Of a member in bytes: a number, or an expression that adds one."""
    found = member.attributes.get(At.DATA_MEMBER_LOCATION, 0)
    if isinstance(found, bytes):
        stream = Stream(found)
        found = stream.leb() if stream.left and stream.number(1) in (Op.PLUS_UCONST, Op.CONSTU) else -1
    bits = member.number(At.DATA_BIT_OFFSET)
    found += 0 if bits is None else bits // 8
    if not 0 <= found <= MOST_BYTES:
        raise DwarfError("where a member lies is not known")
    return int(found)


def _bits(member: Entry, kind: Type) -> tuple[int, int] | None:
    """Of a bit field: DWARF 2 counts from the most significant bit of the storage, later versions from the least."""
    count, first, later = (member.number(name) for name in (At.BIT_SIZE, At.BIT_OFFSET, At.DATA_BIT_OFFSET))
    if count is None:
        return None
    if later is not None:
        return later % 8, count
    storage = member.number(At.BYTE_SIZE) or kind.size
    return max(0, 8 * storage - count - (first or 0)), count
