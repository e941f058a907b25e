"""Typed IR: what the checker produces and every later stage works on.

A function body starts as a flat list of :class:`Op` and :class:`LabelMark` (scopes flattened, names resolved and
unique), becomes basic blocks (``passes/build.py``) and then SSA (``passes/ssa.py``).  The same ``Op`` serves all three:
in SSA form every :class:`Reg` simply has one definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

from msgspec import Struct, field

from ptxemu.ir.numerics import Numerics, numerics_of
from ptxemu.ir.types import ScalarType

if TYPE_CHECKING:
    from ptxemu.isa.effects import Access, Effects
    from ptxemu.isa.operands import Place
    from ptxemu.isa.table import Row
    from ptxemu.text.source import Loc, SourceFile


# ---------------------------------------------------------------- operands


class Reg(Struct, eq=False, gc=False):
    """A register (before SSA) or an SSA value (after). Compared by identity."""

    name: str
    type: ScalarType

    def __repr__(self) -> str:
        return self.name


class Imm(Struct, frozen=True):
    """A constant; ``bits`` is its bit pattern, 0 <= bits < 2**type.bits."""

    bits: int
    type: ScalarType


class SReg(Struct, frozen=True):
    """A special register without its ``%``: ``tid.x``, ``laneid``, ``clock64`` ..."""

    name: str


class Reloc(Struct, frozen=True, eq=False):
    """``size`` bytes at ``offset`` of a variable hold the (generic if ``generic``) address of ``target`` + ``addend``.

    ``shift`` selects a byte of the address for the ``0xff00(sym)`` forms (``size`` is 1 then), else 0.
    """

    offset: int
    size: int
    target: Symbol
    addend: int
    generic: bool
    shift: int = 0


class Variable(Struct, eq=False):
    """A variable in ``global const shared local param``, or an opaque ``texref samplerref surfref`` in ``global``/``param``.

    ``name`` is unique in the module (function-scope names are prefixed with their function).
    ``size`` is the total size in bytes, 0 for ``.extern .shared x[]`` (dynamic shared memory);
    ``init`` lists runs of initial bytes by offset, the rest is zero; ``fields`` the ``name = value`` initialisers of
    opaque types (one dict for each array element).  ``dims`` are the declared extents.
    """

    name: str
    space: str
    type: ScalarType
    vector: int
    dims: tuple[int | None, ...]
    size: int
    align: int
    init: list[tuple[int, bytes]]
    relocs: list[Reloc]
    linkage: str
    pos: int
    fields: list[dict[str, int]] = field(default_factory=list)
    owner: str | None = None


class Param(Struct, eq=False):
    """A parameter of an ``.entry``/``.func``: the variable and, for entries, its byte ``offset`` in the buffer.

    ``row`` are the size and the number of the elements that each thread has in a register file of a dialect.
    """

    variable: Variable
    offset: int
    ptr: tuple[str, int] | None = None
    row: tuple[int, int] | None = None


Symbol = Union[Variable, "Function"]


class SymRef(Struct, frozen=True):
    """The address of a variable or function plus ``offset`` bytes (in the variable's own space)."""

    symbol: Symbol
    offset: int


class Addr(Struct, frozen=True):
    """``[base+offset]``. ``base`` is a Reg, a SymRef (its own offset folded into it, ``offset`` 0) or an Imm address."""

    base: Reg | SymRef | Imm
    offset: int

    @property
    def origin(self) -> Reg | Symbol | None:
        """What it is off: a register or a variable; None for a number."""
        return self.base.symbol if isinstance(self.base, SymRef) else self.base if isinstance(self.base, Reg) else None

    @property
    def distance(self) -> int:
        """From there, in bytes."""
        if isinstance(self.base, Reg):
            return self.offset
        return self.offset + (self.base.offset if isinstance(self.base, SymRef) else self.base.bits)


class Vec(Struct, frozen=True):
    """``{a, b}`` as a source."""

    items: tuple[Operand, ...]


def items_of(operand: Operand) -> tuple[Operand, ...]:
    """The elements of a vector, or the operand alone."""
    return operand.items if isinstance(operand, Vec) else (operand,)


OWN_OR_CONSTANT = frozenset({"const", "param", "local"})
"""State spaces in which no other thread writes."""

MAILBOXES = frozenset({"param", "param::func"})
"""The space of a device function's parameters, as it is written there."""

STRONG = frozenset({"volatile", "relaxed", "acquire", "release"})
"""Modifiers of accesses in which other threads may take part at the same time."""

BYPASSING = frozenset({"cg", "cv", "wt"})
"""Cache operators of accesses to what all multiprocessors share (PTX ISA, "Cache Operators")."""

Operand = Reg | Imm | SReg | SymRef | Addr | Vec


# ---------------------------------------------------------------- operations


class Call(Struct, eq=False):
    """Extra data of a ``call``: ``callee`` is a Function or a Reg; ``args``/``returns`` are param Variables, Regs or Imms.

    A vector register is a Vec of its elements until passes/marshal.py has made the cells.
    ``targets`` lists the functions an indirect call may reach (``.calltargets``), None when unknown; passes/routines.py
    completes it and sets ``exits``: some thread may leave the kernel inside.
    ``prototype`` gives parameter and return Variables for an indirect call.
    """

    callee: Function | Reg
    returns: tuple[Variable | Reg | Vec, ...]
    args: tuple[Variable | Reg | Imm | Vec, ...]
    uniform: bool
    targets: tuple[Function, ...] | None = None
    prototype: tuple[tuple[Variable, ...], tuple[Variable, ...]] | None = None
    exits: bool = False

    @property
    def real(self) -> bool:
        """A call of a function that the module defines (once the others are inlined); else of an external one."""
        return isinstance(self.callee, Reg) or self.callee.body is not None

    @property
    def formals(self) -> tuple[list[Variable], list[Variable]]:
        """The parameters and results of the function or prototype."""
        if self.prototype is not None:
            return list(self.prototype[0]), list(self.prototype[1])
        assert isinstance(self.callee, Function)
        return [param.variable for param in self.callee.params], self.callee.returns


class Op(Struct, eq=False):
    """One instruction. ``op["a"]`` is the operand that the row calls ``a``; positions are for code that treats all alike.

    ``mods`` maps a qualifier of the row to the modifier as written (``{"type": "f32", "round": "rn", "ftz": "ftz"}``);
    ``dsts`` are destination registers left to right (vectors flattened; None for ``_``), ``dst_types`` the instruction
    types of each; ``srcs`` the sources in written order and ``src_types`` their instruction types.  A register may be
    wider than its instruction type (``ld.u8`` into ``.b32``).  ``negs`` tells which sources were written ``!p``.
    ``guard`` is (predicate, negated).  ``labels`` are branch targets.  ``old`` (SSA only) are the values the
    destinations keep in lanes where the guard is false.  ``pos`` is the source offset; ``loc`` the place of its ``.loc`` in
    the module's list, counted from 1, or 0.
    """

    row: Row
    mods: dict[str, str]
    dsts: tuple[Reg | None, ...]
    srcs: tuple[Operand, ...]
    dst_types: tuple[ScalarType, ...]
    src_types: tuple[ScalarType | None, ...]
    pos: int
    end: int
    negs: tuple[bool, ...] = ()
    guard: tuple[Reg, bool] | None = None
    labels: tuple[str, ...] = ()
    call: Call | None = None
    old: tuple[Reg | None, ...] = ()
    loc: int = 0

    @property
    def opcode(self) -> str:
        return self.row.opcode

    @property
    def results(self) -> tuple[Reg, ...]:
        """The destinations that are not ``_``."""
        return tuple(dst for dst in self.dsts if dst is not None)

    @property
    def effects(self) -> Effects:
        """What the instruction does, as its row says."""
        return self.row.effects

    @property
    def accesses(self) -> tuple[MemoryAccess, ...]:
        """The accesses to memory that its row states, with the operands of this op."""
        return tuple(self._accessed(access) for access in self.row.effects.accesses)

    @property
    def access(self) -> MemoryAccess:
        """The first of them, of an op that has one."""
        return self._accessed(self.row.effects.accesses[0])

    def access_of(self, name: str) -> MemoryAccess:
        """The access whose address the row calls so."""
        stated = next((access for access in self.row.effects.accesses if access.operand == name), None)
        assert stated is not None, f"the row does not say what it does to [{name}]: {self.row.text}"
        return self._accessed(stated)

    def _accessed(self, access: Access) -> MemoryAccess:
        space = self.row.space(access, self.mods)
        return MemoryAccess(access, self[access.operand], space, self._bytes(access))

    def _bytes(self, access: Access) -> int | None:
        if access.size.isdecimal():
            return int(access.size)
        if access.size:
            size = self.get(access.size)
            return size.bits if isinstance(size, Imm) else None
        if access.opaque or (place := self.place(access.data or access.operand)) is None:
            return None
        operands, types = (self.dsts, self.dst_types) if place.result else (self.srcs, self.src_types)
        kind, value = types[place.start], operands[place.start]
        elements = len(value.items) if isinstance(value, Vec) else place.stop - place.start
        return None if kind is None else kind.bytes * elements

    def type(self, qualifier: str = "type") -> ScalarType:
        """The scalar type named by a qualifier (KeyError if the qualifier is absent)."""
        from ptxemu.ir.types import TYPES

        return TYPES[self.mods[qualifier]]

    def place(self, name: str) -> Place | None:
        """Where the operand of that name is, None if it is absent (KeyError if the row has none of that name)."""
        return self.row.places(self.mods, len(self.dsts), len(self.srcs))[name]

    def __getitem__(self, name: str) -> Any:
        """The operand that has this name in the row, a destination or a source; None if an optional one is absent.

        A vector of destinations is a tuple of ``Reg | None``, one of sources a Vec.
        """
        place = self.place(name)
        if place is None:
            return None
        operands: tuple[Any, ...] = self.dsts if place.result else self.srcs
        return operands[place.start : place.stop] if place.vector else operands[place.start]

    def get(self, name: str) -> Any:
        """The same, None as well if the row has no operand of that name."""
        return self[name] if name in self.row.names else None

    def type_of(self, name: str) -> ScalarType | None:
        """The instruction type of an operand, of a vector that of its first element; None if absent or of no type."""
        place = self.place(name)
        types = () if place is None else (self.dst_types if place.result else self.src_types)[place.start : place.stop]
        return types[0] if types else None

    def negated(self, name: str) -> bool:
        """Whether a source was written ``!p``."""
        place = self.place(name)
        return place is not None and not place.result and bool(self.negs) and self.negs[place.start]


class MemoryAccess(Struct, frozen=True):
    """An access of an op to memory, as its row states it (``stated``).

    ``address`` is an Addr, or the handle of a surface or texture; ``space`` a state space, ``generic``, ``surface`` or
    ``texture``; ``bytes`` what each lane moves, None where only the execution tells.
    """

    stated: Access
    address: Any
    space: str
    bytes: int | None

    @property
    def shared_with_others(self) -> bool:
        """Whether other threads may access the same memory, and write it."""
        return self.stated.object != "constant" and self.space not in OWN_OR_CONSTANT


class LabelMark(Struct, frozen=True):
    name: str
    pos: int


class Function(Struct, eq=False):
    """A checked ``.entry`` or ``.func``.

    ``body`` is None for declarations.  ``limits`` holds performance directives (``{"maxntid": (x, y, z)}``).
    ``variables`` are its function-scope shared, local, param and const/global variables.
    """

    name: str
    kind: str
    linkage: str
    params: list[Param]
    returns: list[Variable]
    body: list[Op | LabelMark] | None
    variables: list[Variable]
    limits: dict[str, tuple[int, ...]]
    pos: int
    noreturn: bool = False
    unsynced: tuple[tuple[str, str], ...] = ()
    """Pairs of surfaces by name, one written and one read without synchronization: their memory should not be the same."""

    @property
    def ops(self) -> Iterator[Op]:
        """The instructions of the body, if there is one, without the marks of labels."""
        return (item for item in self.body or () if isinstance(item, Op))

    @property
    def param_bytes(self) -> int:
        return max((param.offset + param.variable.size for param in self.params), default=0)


class Module(Struct, eq=False):
    """A checked module: module-scope variables and functions by name."""

    source: SourceFile
    version: tuple[int, int]
    target: tuple[str, ...]
    variables: dict[str, Variable]
    functions: dict[str, Function]
    files: dict[int, str] = field(default_factory=dict)
    locs: list[Loc] = field(default_factory=list)
    dialect: str = "ptx"
    like: str = ""

    @property
    def numerics(self) -> Numerics:
        """What is computed where PTX leaves it open."""
        return numerics_of(self.like, self.target)

    @property
    def entries(self) -> list[Function]:
        return [f for f in self.functions.values() if f.kind == "entry" and f.body is not None]


def names_of(op: Op) -> Iterator[Symbol]:
    """The symbols that the sources and the call of an op name."""
    for item in (item for source in op.srcs for item in items_of(source)):
        base = item.base if isinstance(item, Addr) else item
        if isinstance(base, SymRef):
            yield base.symbol
    if op.call is not None:
        if isinstance(op.call.callee, Function):
            yield op.call.callee
        yield from op.call.targets or ()
