"""The instruction table: the row language and the registry.

A row is one syntax line of the PTX manual::

    row("add", "type=u16,u32,u64,s16,s64", "d:type, a:type, b:type")
    row("add", "sat? type=s32", "d:type, a:type, b:type")
    row("setp", "cmp=eq,ne,lt,le,gt,ge ftz? type=f32", "d:pred|q:pred?, a:type, b:type", lower="setp")

Qualifier words, separated by blanks:

* ``name=a,b,c``   exactly one of the modifiers a, b, c, kept as ``mods[name]``;
* ``name?=a,b,c``  at most one of them;
* ``word``         the modifier ``word`` is required (qualifier and modifier share the name);
* ``word?``        it is optional;
* ``name=a,b!a``   as ``name=a,b``, but a source that leaves it out means ``a`` (a warning; an error in strict mode);
* ``...``          alone: any modifiers at all (instructions that are recognised but not run).

Modifiers are written without their dot; ``shared::cta`` is one modifier.  The order in a row is the manual's, but
any order is accepted in a source, as ptxas does.

Operand patterns, separated by commas, in written order::

    d:T        destination register (names starting with d, and q after a bar)
    d:T|q:pred?   a destination pair, the second optional
    a:T        source: register, immediate or (where the instruction allows it) symbol
    d_:T       destination that may also be ``_`` (names starting with d and ending with _)
    _:T        destination that must be ``_``
    immX:T     source that must be an integer constant (names starting with imm)
    immX:T(4,8)   the same, one of the values listed; ``(0..64/16)`` is a range with a step
    a:T<0..9>  source that, if it is an integer constant, lies in the range
    a:f32<0..1>  the same of a floating-point constant, which must be above the first
    a:T<b>     source that, if it is an integer constant, is not negative and at most that of operand b
    [a]:T      memory address; the data type T is for alignment only
    [a]@s:T    memory address in the state space that qualifier ``s`` gives, or in the space named s; else qualifier ``space``
    v:T*vec    vector of as many elements as the modifier of qualifier ``vec`` says (v2, v4, v8), scalar when absent
    v:T*4      vector of exactly so many elements, always in braces
    v:T*shape/2   vector of half as many elements as the shape of qualifier ``shape`` has columns
    a.S:T      register that may have a selector of family S (see SELECTORS), kept as the modifier ``asel``
    d.S!:T     the same, but it must have one
    -a:T       source that may be negated; ``aneg`` is then among the modifiers; ``a.whole:T`` is a register, never a literal
    c:u32?     optional operand (a trailing ?)
    c:b64?qualifier operand that is present exactly when the optional qualifier is given
    s:surface*geom   ``[surface, coordinates]``, as many coordinates as ``geom`` needs; ``s:surface`` is ``[surface]``
    t:texture*geom   ``[texture, coordinates]`` or ``[texture, sampler, coordinates]``; ``t:texture`` is ``[texture]``
    s:sampler  ``[sampler]``
    [t]:tensor*dim   ``[address of a tensor map, coordinates]``, as many coordinates as ``dim`` says; ``[t]:tensor*5``, five
    x:gradient*geom  a vector of f32, ``e:offset*geom`` one of texel offsets
    d:T*vec|p:pred?  a vector and an optional predicate
    d..., a...  any number of destinations or sources (rows that no text has)
    ...        alone: any operands, whose names are resolved and nothing more

An op answers to the names (:meth:`ptxemu.ir.ops.Op.__getitem__`).  The coordinates of ``s:surface*geom``,
``t:texture*geom`` and ``[t]:tensor*dim``
have the name ``coordinates``, a texture's sampler ``sampler``; registers that are read or written without being in the
text those of the effects (``reads cc``).

A type T is the name of a qualifier whose modifier is a type, a type name, ``wide(qualifier)`` (twice the width, same kind),
``dot(qualifier,qualifier)`` (``u32`` if the types of both qualifiers are unsigned, else ``s32``), or one of ``label`` (a code
label), ``targets`` (a ``.branchtargets`` list), ``address`` (a 32- or 64-bit integer register), ``random`` (a ``.b32``
register with random bits) and nothing at all (an address whose data have no type).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import cache
from types import MappingProxyType

from msgspec import Struct, field
from msgspec.structs import replace

from ptxemu.isa.effects import PURE, Access, Effects
from ptxemu.isa.effects import parse as effects_of
from ptxemu.isa.fidelity import DEFINED
from ptxemu.isa.operands import Implicit, Names, OperandPattern, counting, names, parse, places
from ptxemu.isa.traits import traits_of

UNSUPPORTED = "unsupported"
CLUSTER = "cluster"
CLUSTER_SHARED = "shared::cluster"
SPACES = frozenset({"global", "shared", "local", "tensor"})
"""Those that an address pattern may name in place of a qualifier."""
LOADS_AND_STORES = frozenset({"ld", "st"})
"""The lowerings of what only loads, or only stores, by each thread for itself."""
ADD = "add.int"
"""That of a sum of two integers."""


class Qualifier(Struct, frozen=True):
    name: str
    values: tuple[str, ...]
    required: bool
    default: str | None = None


class Row(Struct, frozen=True, eq=False):
    """One row. ``lower`` names the lowering function, or is UNSUPPORTED.

    ``flags`` are words for the checker: ``unified`` (not in independent texturing mode); ``specials`` (reads special registers);
    ``integer`` (results are integer registers, whatever type is written); ``relaxed`` (registers may be wider than the
    instruction type); ``exact`` (and not, though those of the opcode may); ``widened`` (addresses of 32 bits are valid in any
    state space); and those that say which versions and targets have the row (:mod:`ptxemu.check.gates`): ``unsynced``,
    ``accelerated``, ``specific``, ``hopper``, ``blackwell``, ``integers``, ``ultra``, ``tensors``, ``bytes``, ``rubin``, ``ada``,
    ``narrow``.

    ``ptx`` and ``sm`` are the least version and target of the row, ``gates`` those of single modifiers, of several together
    (as ``cc&u64``), of an optional operand ``e`` (as ``+e``) and of an optional second destination ``p`` (as ``|p``).

    ``effects`` is what the instruction does (:mod:`ptxemu.isa.effects`), ``stated`` whether the row says so.

    ``bits`` is what is known of the bits of its results (:mod:`ptxemu.isa.fidelity`).

    ``names`` are those of all operands, ``counting`` the qualifiers that decide how many there are.
    """

    opcode: str
    qualifiers: tuple[Qualifier, ...]
    operands: tuple[OperandPattern, ...]
    ptx: tuple[int, int]
    sm: int
    lower: str
    flags: frozenset[str]
    chapter: str
    text: str
    by_modifier: dict[str, Qualifier] = field(default_factory=dict)
    gates: Mapping[str, tuple[tuple[int, int], int]] = field(default_factory=dict)
    any_modifiers: bool = False
    any_operands: bool = False
    effects: Effects = PURE
    stated: bool = False
    names: frozenset[str] = frozenset()
    counting: tuple[str, ...] = ()
    bits: str = DEFINED

    @property
    def supported(self) -> bool:
        return self.lower != UNSUPPORTED

    @property
    def traits(self) -> Set[str]:
        """What the checker must know of the opcode (:mod:`ptxemu.isa.traits`)."""
        return traits_of(self.opcode)

    @property
    def discards(self) -> bool:
        """Whether all results may be left out (``_``), with the same effects."""
        return any(pattern.sink for pattern in self.operands) and not self.effects.pure

    @property
    def implicit(self) -> Implicit:
        """The registers that are operands though no text has them."""
        return self.effects.implicit

    def space(self, access: Access, mods: Mapping[str, str]) -> str:
        """The state space of an access: without ``::cta``, ``generic`` if none is given, CLUSTER for shared memory that may be
        another CTA's, or ``surface`` or ``texture``."""
        pattern = next(one for one in self.operands if one.name == access.operand)
        if access.opaque:
            return "texture" if pattern.type == "texture" else "surface"
        if pattern.space in mods or pattern.space not in SPACES:
            written = mods.get(pattern.space, "generic")
            return CLUSTER if written == CLUSTER_SHARED else written.partition("::")[0]
        return pattern.space

    def places(self, mods: Mapping[str, str], dsts: int, srcs: int) -> Names:
        """Where an op with so many destinations and sources has each operand, by name; None for one that is absent."""
        found = self.fitting(mods, dsts, srcs)
        assert found is not None, f"{dsts} destinations and {srcs} sources do not fit the row: {self.text}"
        return found

    def fitting(self, mods: Mapping[str, str], dsts: int, srcs: int) -> Names | None:
        """The same, None if an op with so many does not fit the row."""
        counts = (
            tuple([(qualifier, mods[qualifier]) for qualifier in self.counting if qualifier in mods]) if self.counting else ()
        )
        return _places(self, counts, dsts, srcs)

    def pattern(self, name: str) -> OperandPattern | None:
        """That of an operand; None for one that is written with another or not at all."""
        return _patterns(self).get(name)


@cache
def _places(row: Row, counts: tuple[tuple[str, str], ...], dsts: int, srcs: int) -> Names | None:
    return places(row.operands, row.implicit, dict(counts), dsts, srcs)


@cache
def _patterns(row: Row) -> Mapping[str, OperandPattern]:
    every = (pattern for one in reversed(row.operands) for pattern in (one.second, one) if pattern is not None)
    return {pattern.name: pattern for pattern in every}


class Table(Mapping[str, list[Row]]):
    """Rows by opcode, made when those of an opcode are asked for: a program has few of them."""

    def __init__(self) -> None:
        self._given: dict[str, list[tuple[str, Callable[[], Row]]]] = {}
        self._made: dict[str, list[Row]] = {}

    def add(self, opcode: str, qualifiers: str, make: Callable[[], Row]) -> None:
        """Add one row with these qualifiers."""
        self._given.setdefault(opcode, []).append((qualifiers, make))
        if opcode in self._made:
            self._made[opcode].append(make())

    def __getitem__(self, opcode: str) -> list[Row]:
        found = self._made.get(opcode)
        if found is None:
            found = self._made.setdefault(opcode, [make() for _, make in self._given[opcode]])  # another thread may be first
        return found

    def __delitem__(self, opcode: str) -> None:
        del self._given[opcode]
        self._made.pop(opcode, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __contains__(self, opcode: object) -> bool:
        return opcode in self._given

    def is_bare(self, opcode: str) -> bool:
        """Whether there is an opcode that may be written without a modifier."""
        return opcode in self._given and any(
            qualifiers != "..." and not any(_qualifier(word).required for word in qualifiers.split())
            for qualifiers, _ in self._given[opcode]
        )


ROWS = Table()


@cache
def _qualifier(word: str) -> Qualifier:
    if "=" in word:
        name, values = word.split("=", 1)
        values, _, default = values.partition("!")
        return Qualifier(name.rstrip("?"), tuple(values.split(",")), not name.endswith("?"), default or None)
    name = word.rstrip("?")
    return Qualifier(name, (name,), not word.endswith("?"))


@cache
def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


@cache
def _gates(text: str) -> Mapping[str, tuple[tuple[int, int], int]]:
    parts = (word.rsplit("@", 2) for word in text.split())
    return {modifier: (_version(ptx), int(sm)) for modifier, ptx, sm in parts}


def row(
    opcode: str,
    qualifiers: str,
    operands: str,
    *,
    ptx: str = "1.0",
    sm: int = 10,
    lower: str | None = None,
    flags: str = "",
    chapter: str = "",
    gates: str = "",
    does: str = "",
    bits: str = DEFINED,
) -> None:
    """Add one row to the table.

    ``lower`` defaults to the opcode; ``does`` are the effects, which only elementwise instructions may leave out;
    ``gates`` are words ``modifier@ptx@sm``: what a single modifier needs; ``bits`` what is known of the results' bits.
    """

    def make() -> Row:
        return add_row(
            {}, opcode, qualifiers, operands, (_version(ptx), sm), lower or opcode, flags, chapter, _gates(gates), does, bits
        )

    ROWS.add(opcode, qualifiers, make)


def add_row(
    table: dict[str, list[Row]],
    opcode: str,
    qualifiers: str,
    operands: str,
    least: tuple[tuple[int, int], int] = ((1, 0), 0),
    lower: str = "",
    flags: str = "",
    chapter: str = "",
    gates: Mapping[str, tuple[tuple[int, int], int]] = MappingProxyType({}),
    does: str = "",
    bits: str = DEFINED,
) -> Row:
    """Add one row to any table, such as that of a dialect; ``least`` is its version and target."""
    any_modifiers, any_operands = qualifiers == "...", operands == "..."
    parsed = () if any_modifiers else tuple(_qualifier(word) for word in qualifiers.split())
    patterns = () if any_operands else parse(operands)
    effects = effects_of(does)
    entry = Row(
        opcode,
        parsed,
        patterns,
        *least,
        lower or opcode,
        frozenset(flags.split()),
        chapter,
        f"{opcode} {qualifiers} | {operands}".strip(),
        {value: qualifier for qualifier in parsed for value in qualifier.values},
        gates,
        any_modifiers,
        any_operands,
        effects,
        bool(does),
        names(patterns, effects.implicit),
        counting(patterns),
        bits,
    )
    table.setdefault(opcode, []).append(entry)
    return entry


def internal_row(name: str, operands: str = "", *, lower: str = "", does: str = "") -> Row:
    """A row that no text has: of ops that passes or dialects make."""
    return add_row({}, name, "", operands, lower=lower, chapter="internal", does=does)


def with_operands(row: Row, operands: tuple[OperandPattern, ...]) -> Row:
    """The row with other operands."""
    return replace(row, operands=operands, names=names(operands, row.implicit), counting=counting(operands))
