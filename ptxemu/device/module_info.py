"""What a launch needs to know of a module besides its code: kernels, parameters, variables and their first contents.

It is plain data, so that the disk cache can hold it and a warm start need not parse the PTX at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

OPAQUE_TYPES = ("surfref", "texref", "samplerref")
GLOBAL, CONST, HANDLE = "global", "const", "handle"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry. ``elements`` is None for a scalar, else the element count of an array (a struct).

    ``row`` is not None for a register file of a dialect: the size and the number of each thread's elements.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    elements: int | None
    pointer: tuple[str, int] | None
    row: tuple[int, int] | None = None

    @property
    def opaque(self) -> bool:
        return self.type in OPAQUE_TYPES


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """An entry: its parameters and what binds a launch: performance directives (``maxntid``, ``reqntid`` ...), and
    ``domain`` for programs of points: the extents of their rectangle, or nothing for as many as the grid has.

    ``unsynced`` are pairs of surfaces, one written and one read, whose memory should not be the same.
    """

    name: str
    parameters: tuple[Parameter, ...]
    param_bytes: int
    limits: dict[str, tuple[int, ...]]
    unsynced: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A module variable in global or constant memory, at ``offset`` of the module's block of that space."""

    name: str
    space: str
    type: str
    vector: int
    dims: tuple[int, ...]
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class HandleInfo:
    """An opaque module variable and the indices of its elements in the module's table of handles.

    ``fields`` are the initialisers of its elements, which preset what ``suq`` and ``txq`` report (PTX ISA, "Opaque types").
    """

    name: str
    type: str
    first: int
    count: int
    fields: tuple[dict[str, int], ...]


@dataclass(frozen=True, slots=True)
class Relocation:
    """``size`` bytes at ``offset`` of the block of ``space`` hold an address, from its bit ``shift`` on.

    The address is ``addend`` + the base of the ``global`` or ``const`` block, or + handle number ``index``.
    """

    space: str
    offset: int
    size: int
    shift: int
    base: str
    addend: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """The memory of all variables of a space: its size and alignment in bytes."""

    size: int
    align: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Initial bytes at ``offset`` of the block of ``space``. What no contents or relocation names is zero."""

    space: str
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """A module's kernels and memory; ``contents`` come before the relocations, which may lie in them."""

    kernels: dict[str, KernelInfo]
    variables: dict[str, VariableInfo]
    handles: dict[str, HandleInfo]
    relocations: tuple[Relocation, ...]
    blocks: dict[str, Block]
    contents: tuple[Contents, ...]

    @property
    def handle_count(self) -> int:
        return sum(handle.count for handle in self.handles.values())

    def initial(self, bases: dict[str, int], handles: Sequence[int]) -> Iterator[Contents]:
        """What the blocks at ``bases`` hold at first, for a table of ``handles``, in the order in which it is to be written."""
        yield from self.contents
        for item in self.relocations:
            base = handles[item.index] if item.base == HANDLE else bases[item.base]
            value = (base + item.addend) % 2**64 >> item.shift
            yield Contents(item.space, item.offset, value.to_bytes(8, "little")[: item.size])

    def to_json(self) -> dict[str, Any]:
        """Everything but the bytes of the contents, as JSON data."""
        return {
            "kernels": [asdict(item) for item in self.kernels.values()],
            "variables": [asdict(item) for item in self.variables.values()],
            "handles": [asdict(item) for item in self.handles.values()],
            "relocations": [asdict(item) for item in self.relocations],
            "blocks": {space: asdict(item) for space, item in self.blocks.items()},
            "contents": [(item.space, item.offset, len(item.data)) for item in self.contents],
        }

    def bytes_of_contents(self) -> bytes:
        """The bytes of all contents, one after another."""
        return b"".join(item.data for item in self.contents)

    @classmethod
    def from_json(cls, data: dict[str, Any], contents: bytes) -> ModuleInfo | None:
        """The inverse of :meth:`to_json` and :meth:`bytes_of_contents`, or None if the data are something else."""
        try:
            stored = msgspec.convert(data, _Stored)
        except msgspec.ValidationError:
            return None
        return cls(
            {item.name: item for item in stored.kernels},
            {item.name: item for item in stored.variables},
            {item.name: item for item in stored.handles},
            stored.relocations,
            stored.blocks,
            tuple(_contents(stored.contents, contents)),
        )


class _Stored(msgspec.Struct):
    """The JSON form."""

    kernels: tuple[KernelInfo, ...]
    variables: tuple[VariableInfo, ...]
    handles: tuple[HandleInfo, ...]
    relocations: tuple[Relocation, ...]
    blocks: dict[str, Block]
    contents: tuple[tuple[str, int, int], ...]


def _contents(items: Iterable[tuple[str, int, int]], data: bytes) -> Iterator[Contents]:
    start = 0
    for space, offset, size in items:
        yield Contents(space, offset, data[start : start + size])
        start += size
