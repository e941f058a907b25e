"""What a launch needs to know of a module besides its code: kernels, parameters, variables and their first contents.

It is plain data, so that the disk cache can hold it and a warm start need not parse the PTX at all.
"""

from __future__ import annotations

from msgspec import Struct

from ptxemu.ir.types import OPAQUE

GLOBAL, CONST, HANDLE = "global", "const", "handle"
POINTER_USE = "pointer"
C_NAMES = {
    "u8": "unsigned char", "s8": "signed char", "u16": "unsigned short", "s16": "short", "u32": "unsigned", "s32": "int",
    "u64": "unsigned long", "s64": "long", "f16": "half", "f32": "float", "f64": "double",
}  # fmt: skip


class Use(Struct, frozen=True):
    """What a kernel does with what a parameter stands for, ``offset`` bytes from its beginning (analysis/parameters.py).

    ``kind`` is ``pointer``, ``surface``, ``texture`` or ``sampler``.  ``element`` is the type of all elements that are accessed,
    one of bits if only their size is known; of a texture that of the results.  ``geometry`` is that of images.  Both are empty
    where they are unknown or not the same everywhere.  ``numeric``: the kernel makes sums or products of the integers, and does
    not only move or compare them.
    """

    offset: int
    kind: str
    element: str
    geometry: str
    reads: bool
    writes: bool
    numeric: bool

    def __str__(self) -> str:
        """``float*, read``, ``surface 2d, written``, ``texture 2d, f32``."""
        if self.kind == POINTER_USE:
            what = f"{C_NAMES.get(self.element, self.element)}*" if self.element else POINTER_USE
        else:
            what = f"{self.kind} {self.geometry}".strip()
        if self.kind == "texture":
            return f"{what}, {self.element}" if self.element else what
        done = [word for word, is_so in (("read", self.reads), ("written", self.writes)) if is_so]
        return ", ".join([what, *([" and ".join(done)] if done else [])])


class Parameter(Struct, frozen=True):
    """A parameter of an entry. ``elements`` is None for a scalar, else the element count of an array (a struct).

    ``row`` is not None for a register file of a dialect: the size and the number of each thread's elements.  ``uses`` are what is
    known of the pointers and handles in it.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    elements: int | None
    pointer: tuple[str, int] | None
    row: tuple[int, int] | None = None
    uses: tuple[Use, ...] = ()

    def use_at(self, offset: int) -> Use | None:
        """What is known of the pointer or handle at a byte of it."""
        return next((use for use in self.uses if use.offset == offset), None)

    @property
    def opaque(self) -> bool:
        return self.type in OPAQUE


class KernelInfo(Struct, frozen=True):
    """An entry: its parameters and what binds a launch: performance directives (``maxntid``, ``reqntid`` ...), and
    ``domain`` for programs of points: the extents of their rectangle, or nothing for as many as the grid has.

    ``unsynced`` are pairs of surfaces, one written and one read, whose memory should not be the same.  ``number`` is that of the
    function in the module, which stands for its address.
    """

    name: str
    parameters: tuple[Parameter, ...]
    param_bytes: int
    limits: dict[str, tuple[int, ...]]
    unsynced: tuple[tuple[str, str], ...] = ()
    number: int = 0


class VariableInfo(Struct, frozen=True):
    """A module variable in global or constant memory, at ``offset`` of the module's block of that space."""

    name: str
    space: str
    type: str
    vector: int
    dims: tuple[int, ...]
    size: int
    offset: int


class HandleInfo(Struct, frozen=True):
    """An opaque module variable and the indices of its elements in the module's table of handles.

    ``fields`` are the initialisers of its elements, which preset what ``suq`` and ``txq`` report (PTX ISA, "Opaque types").
    """

    name: str
    type: str
    first: int
    count: int
    fields: tuple[dict[str, int], ...]


class Relocation(Struct, frozen=True):
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


class Block(Struct, frozen=True):
    """The memory of all variables of a space: its size and alignment in bytes."""

    size: int
    align: int


class Contents(Struct, frozen=True):
    """Initial bytes at ``offset`` of the block of ``space``. What no contents or relocation names is zero."""

    space: str
    offset: int
    data: bytes


class TextLines(Struct, frozen=True):
    """Where one text of the program starts in all of it, and where each of its lines does: positions of 32 bits."""

    start: int
    lines: bytes


class ModuleInfo(Struct, frozen=True):
    """A module's kernels and memory; ``contents`` come before the relocations, which may lie in them. ``texts`` in order."""

    kernels: dict[str, KernelInfo]
    variables: dict[str, VariableInfo]
    handles: dict[str, HandleInfo]
    relocations: tuple[Relocation, ...]
    blocks: dict[str, Block]
    contents: tuple[Contents, ...]
    texts: tuple[TextLines, ...]

    @property
    def handle_count(self) -> int:
        return sum(handle.count for handle in self.handles.values())
