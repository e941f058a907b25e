"""The abstract syntax tree of a PTX module.

Every node carries ``pos`` and ``end``: character offsets into the source text, half open.  They are turned
into lines and columns only when a diagnostic is printed (:class:`ptxemu.text.source.SourceFile`).
The tree is pure syntax: names are unresolved, modifiers unsorted, literals untyped.

A large module has 100,000 nodes: a struct of :mod:`msgspec` takes a tenth of the time that a frozen dataclass takes to
make.  No node refers to what holds it, so the garbage collector need not know them (``gc=False``).
"""

from __future__ import annotations

from msgspec import Struct, field

from ptxemu.text.source import Loc

# ---------------------------------------------------------------- operands


class Name(Struct, frozen=True, gc=False):
    """An identifier, with its leading ``%`` or ``$``; a special-register member keeps its dot (``%tid.x``)."""

    text: str
    pos: int
    end: int


class Int(Struct, frozen=True, gc=False):
    """An integer literal (sign folded in). ``unsigned`` is true for a ``U`` suffix; ``value`` is unbounded."""

    value: int
    unsigned: bool
    pos: int
    end: int


class Float(Struct, frozen=True, gc=False):
    """A float literal: its exact IEEE bits and width. ``0f`` gives width 32, ``0d`` and decimals give 64."""

    bits: int
    width: int
    pos: int
    end: int


class Offset(Struct, frozen=True, gc=False):
    """``symbol+integer`` outside brackets, as in ``mov.u64 %rd1, table+16`` (sign folded into ``offset``)."""

    base: Name
    offset: int
    pos: int
    end: int


class Not(Struct, frozen=True, gc=False):
    """``!%p``: a negated predicate operand."""

    operand: Name
    pos: int
    end: int


class Neg(Struct, frozen=True, gc=False):
    """``-%r``: a negated register operand (parsed so that the checker can reject it with a clear message)."""

    operand: Operand
    pos: int
    end: int


class Pair(Struct, frozen=True, gc=False):
    """``%p|%q``: two destinations."""

    first: Operand
    second: Operand
    pos: int
    end: int


class Vector(Struct, frozen=True, gc=False):
    """``{a, b, c}``: a vector of operands; may nest nothing but simple operands."""

    items: tuple[Operand, ...]
    pos: int
    end: int


class Address(Struct, frozen=True, gc=False):
    """``[base+offset]`` with further comma-separated operands in ``rest``.

    ``base`` is a Name or Int; ``offset`` a signed integer.  ``[s, {%r1}]`` has ``rest == (Vector,)``;
    ``[tex, samp, {..}]`` has two.
    """

    base: Name | Int
    offset: int
    rest: tuple[Operand, ...]
    pos: int
    end: int


class Group(Struct, frozen=True, gc=False):
    """``(a, b)``: a parenthesised operand list of ``call``."""

    items: tuple[Operand, ...]
    pos: int
    end: int


class Sink(Struct, frozen=True, gc=False):
    """``_``: a destination whose value is dropped."""

    pos: int
    end: int


class Index(Struct, frozen=True, gc=False):
    """``array[i]`` outside brackets: an element of an array variable; ``index`` is Int, Name or Offset."""

    base: Name
    index: Operand
    pos: int
    end: int


Operand = Name | Int | Float | Offset | Not | Neg | Pair | Vector | Address | Group | Sink | Index

# ---------------------------------------------------------------- initialisers


class Init(Struct, frozen=True, gc=False):
    """A scalar initialiser: a literal, ``symbol+offset``, ``generic(symbol)`` or ``mask(symbol)`` forms.

    ``value`` is Int, Float, Name or Offset; ``generic`` marks ``generic(sym)``; ``mask`` is the byte mask of
    ``0xff(sym)`` forms or None; ``name`` is set for ``field = value`` pairs of opaque types.
    """

    value: Operand
    generic: bool
    mask: int | None
    name: str | None
    pos: int
    end: int


class InitList(Struct, frozen=True, gc=False):
    """``{ ... }``: a nested initialiser list."""

    items: tuple[Init | InitList, ...]
    pos: int
    end: int


# ---------------------------------------------------------------- declarations and statements


class Variable(Struct, gc=False):
    """One declared name.

    ``space`` is ``reg sreg const global local param shared tex``; ``type`` the type name without its dot;
    ``vector`` 0, 2, 4 or 8; ``align`` in bytes, 0 for none and -1 for ``.align 0``; ``dims`` the array extents, None for ``[]``;
    ``count`` the n of ``%r<n>`` or None; ``linkage`` is ``"" extern visible weak common``;
    ``attributes`` hold ``.attribute(...)`` texts; ``ptr`` is (space or opaque type,
    align) of ``.ptr`` parameters or None.
    """

    name: str
    space: str
    type: str
    vector: int
    align: int
    dims: tuple[int | None, ...]
    count: int | None
    init: Init | InitList | None
    linkage: str
    attributes: tuple[str, ...]
    ptr: tuple[str, int] | None
    pos: int
    end: int


class Instruction(Struct, gc=False):
    """``@!%p opcode.mod.mod operands;``.  ``guard`` is (register name, negated) or None.

    ``modifiers`` are the dotted words after the opcode, without dots, ``::`` kept (``shared::cta``);
    ``opcode_end`` is where the opcode and its modifiers end, for carets.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: tuple[Name, bool] | None
    pos: int
    end: int
    opcode_pos: int
    opcode_end: int
    loc: int = 0  # index + 1 into Module.locs of the .loc in force, or 0


class Label(Struct, gc=False):
    name: str
    pos: int
    end: int


class TargetList(Struct, gc=False):
    """``name: .branchtargets a, b;`` or ``name: .calltargets f, g;`` (``kind`` tells)."""

    name: str
    kind: str
    targets: tuple[Name, ...]
    pos: int
    end: int


class Prototype(Struct, gc=False):
    """``name: .callprototype (ret) _ (params);``"""

    name: str
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    noreturn: bool
    pos: int
    end: int


class Pragma(Struct, gc=False):
    texts: tuple[str, ...]
    pos: int
    end: int


class Block(Struct, gc=False):
    """``{ ... }``: a scope."""

    body: list[Statement]
    pos: int
    end: int


Statement = Instruction | Label | Variable | TargetList | Prototype | Pragma | Block


class Directive(Struct, gc=False):
    """A performance or function directive: ``.maxntid 128, 1, 1`` is ("maxntid", (128, 1, 1))."""

    name: str
    values: tuple[int | str, ...]
    pos: int
    end: int


class Function(Struct, gc=False):
    """``.entry`` or ``.func`` (``kind``), a declaration when ``body`` is None."""

    kind: str
    name: str
    linkage: str
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    directives: tuple[Directive, ...]
    body: Block | None
    pos: int
    end: int
    name_pos: int = 0


class Alias(Struct, gc=False):
    """``.alias name, target;``"""

    name: Name
    target: Name
    pos: int
    end: int


class Module(Struct, gc=False):
    """A whole translation unit. ``version`` is (major, minor); ``target`` its comma-separated words.

    ``files`` maps a ``.file`` index to its name; ``locs`` lists each ``.loc``.
    Debug ``.section`` contents are read and dropped.
    """

    version: tuple[int, int] | None = None
    version_pos: int = 0
    target: tuple[str, ...] = ()
    target_pos: int = 0
    address_size: int | None = None
    address_size_pos: int = 0
    items: list[Variable | Function | Pragma | Alias] = field(default_factory=list)
    files: dict[int, str] = field(default_factory=dict)
    locs: list[Loc] = field(default_factory=list)
