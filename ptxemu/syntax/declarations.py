"""What the declarations of the grammar build: variables, functions, prototypes, module headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from ptxemu.syntax import expressions as build
from ptxemu.syntax.ast import (
    Block,
    Directive,
    Function,
    Init,
    InitList,
    Int,
    Module,
    Name,
    Offset,
    Operand,
    Prototype,
    Variable,
)
from ptxemu.syntax.words import TUNING

if TYPE_CHECKING:
    from ptxemu.syntax.stream import TokenStream

EXPLICIT_ZERO = -1
"""The alignment of ``.align 0``, which is an error, to tell it from none."""

UNNAMED = "?"
"""The name of a function whose head was not read."""

MOST_TARGETS = 65536
_HEAD_END = re.compile(r"[{;]")
DECLARED_DIRECTIVES = frozenset({"noreturn", "abi_preserve", "abi_preserve_control", "pragma"})
PROTOTYPE_DIRECTIVES = frozenset({"noreturn", "abi_preserve", "abi_preserve_control"})
ABI_VERSION = (9, 0)  # of .abi_preserve and .abi_preserve_control
WARP_SIZE_NAME = "WARP_SZ"

Attribute = tuple[list[str], int, int]
"""The texts of an ``.attribute()``, its pos and end."""

Spec = int | str | Attribute
"""What may stand between state space and type: an alignment, ``".v4"``, attributes."""

Declarator = tuple[str, int, int, tuple[int | None, ...], int | None]
"""Name, pos, end, extents, and the count of ``%r<n>``."""


class Header(Struct):
    """Fills in ``.version``, ``.target`` and ``.address_size``, each of which may be given once."""

    stream: TokenStream
    module: Module

    def version(self, text: str, pos: int, number: int, end: int) -> None:
        major, dot, minor = text.partition(".")
        if not (dot and major.isdigit() and minor.isdigit() and len(text) < 10):
            self.stream.error("expected a version number such as 8.0 after '.version'", number, end)
        elif self._first("version", self.module.version, pos):
            self.module.version, self.module.version_pos = (int(major), int(minor)), pos

    def target(self, words: list[str], pos: int) -> None:
        if self.module.target and not (self.module.items or self.module.address_size):
            self.stream.diagnostics.warning("this '.target' replaces the one before", pos, pos + len(".target"))
        elif not self._first("target", self.module.target or None, pos):
            return
        self.module.target, self.module.target_pos = tuple(words), pos

    def address_size(self, size: int, pos: int, number: int, end: int) -> None:
        if size not in (32, 64):
            self.stream.error("'.address_size' must be 32 or 64", number, end)
        elif self._first("address_size", self.module.address_size, pos):
            if self.module.files:
                self.stream.extension("'.address_size' must come before '.file'", pos, pos + len(".address_size"))
            self.module.address_size, self.module.address_size_pos = size, pos

    def _first(self, directive: str, given: object, pos: int) -> bool:
        if given is not None:
            self.stream.error(f"'.{directive}' is given twice", pos, pos + len(directive) + 1)
        return given is None


def variable(
    stream: TokenStream,
    linkage: str,
    space: str,
    specs: list[Spec],
    type_word: str,
    pointer: tuple[str, int] | None,
    declarator: Declarator,
    init: Init | InitList | None,
) -> Variable:
    """One declared name; ``pos`` and ``end`` are those of the name with its extents."""
    name, pos, end, dims, count = declarator
    vector, align = 0, 0
    attributes: list[str] = []
    for spec in specs:
        if isinstance(spec, str):
            if vector:
                stream.error(f"the vector size of '{name}' is given twice", pos, end)
            vector = int(spec[2:])
        elif isinstance(spec, int):
            if align:
                stream.diagnostics.warning(f"the alignment of '{name}' is given twice; the last one counts", pos, end)
            if vector:
                stream.extension(f"the alignment of '{name}' must come before its vector size", pos, end)
            align = spec or EXPLICIT_ZERO
        else:
            attributes.extend(spec[0])
    plain_name(stream, Name(name, pos, pos + len(name)), "variable")
    return Variable(
        name, space[1:], type_word[1:], vector, align, dims, count, init, linkage, tuple(attributes), pointer, pos, end
    )


class FunctionHeader(Struct, frozen=True):
    """What comes before a function's body. Early compilers end a prototype there, without a semicolon."""

    linkage: tuple[str, int | None]
    kind: str
    pos: int
    attributes: list[Attribute]
    returns: list[Variable]
    name: Name
    params: list[Variable]
    directives: list[Directive]
    end: int


def function(stream: TokenStream, header: FunctionHeader, body: tuple[Block | None, int]) -> Function:
    """``.entry`` or ``.func``; its attributes come first among the directives."""
    plain_name(stream, header.name, "function")
    for formal in (*header.returns, *header.params):
        if formal.name == "_" and header.kind == "func":
            stream.error(f"a parameter of '{header.name.text}' must have a name", formal.pos, formal.end)
    given = [Directive("attribute", tuple(texts), at, stop) for texts, at, stop in header.attributes]
    linkage, start = header.linkage
    block, end = body
    stray = next((item for item in header.directives if item.name not in DECLARED_DIRECTIVES), None)
    if block is None and stray is not None and header.kind == "func":
        stream.error(f"'.{stray.name}' is for kernels", stray.pos, stray.end)
    elif block is None and stray is not None:
        stream.error(f"expected the body of '{header.name.text}' before ';': a declaration has no such directives", end - 1, end)
    if block is not None and header.kind == "func" and any(item.name == "pragma" for item in header.directives):
        stream.extension(f"the pragma of '{header.name.text}' must stand in its body", block.pos, block.pos + 1)
    return Function(
        kind=header.kind,
        name=header.name.text,
        linkage=linkage,
        returns=tuple(header.returns),
        params=tuple(header.params),
        directives=(*given, *header.directives),
        body=block,
        pos=header.pos if start is None else start,
        end=end,
        name_pos=header.name.pos,
    )


def tuning(stream: TokenStream, name: str, values: list[int], pos: int, end: int) -> Directive:
    """``.maxntid 16, 16`` and its like."""
    most = TUNING[name]
    if not min(most, 1) <= len(values) <= most:
        takes = ("no value", "one integer", "", "one to three integers")[most]
        if not values:  # one is missing from what follows
            pos, end = stream.seen(pos, end)
        elif "\n" in stream.text[pos:end]:
            pos = end - 1
        stream.error(f"'.{name}' takes {takes}", pos, end)
    return Directive(name, tuple(values), pos, end)


def prototype(
    stream: TokenStream,
    label: Name,
    returns: list[Variable],
    place: Name,
    params: list[Variable],
    directives: list[Directive],
    end: int,
) -> Prototype:
    """``label: .callprototype (returns) _ (params) .noreturn;``"""
    if place.text != "_":
        stream.error("expected '_' in place of the function name", place.pos, place.end)
    for item in directives:
        if item.name not in PROTOTYPE_DIRECTIVES:
            stream.error(f"'.{item.name}' is not for prototypes", item.pos, item.end)
        if [other.name for other in directives].count(item.name) > 1:
            stream.error(f"'.{item.name}' is given twice", item.pos, item.end)
        if item.name != "noreturn" and (stream.module.version or ABI_VERSION) < ABI_VERSION:
            stream.extension(f"'.{item.name}' needs PTX {ABI_VERSION[0]}.{ABI_VERSION[1]}", item.pos, item.end)
        if item.name == "noreturn" and returns:
            stream.error("a prototype with a result cannot be .noreturn", item.pos, item.end)
    noreturn = any(item.name == "noreturn" for item in directives)
    return Prototype(label.text, tuple(returns), tuple(params), noreturn, label.pos, end)


def generic(stream: TokenStream, word: Name, inner: Operand, end: int) -> Init:
    """``generic(symbol)``."""
    if word.text != "generic":
        stream.error(f"expected 'generic' before '(', found '{word.text}'", word.pos, word.end)
    inner = build.unwrap(inner)
    if isinstance(inner, Offset):
        stream.extension("write the offset of an address after 'generic()', not in it", inner.pos, inner.end)
    if not isinstance(inner, Name | Offset):
        stream.error("expected a variable in 'generic()'", inner.pos, inner.end)
        inner = Int(0, False, inner.pos, inner.end)
    return Init(inner, True, None, None, word.pos, end)


def displaced(init: Init, offset: int, end: int) -> Init:
    """``generic(symbol)+offset``."""
    value = init.value
    if isinstance(value, Name):
        value = Offset(value, offset, value.pos, value.end)
    elif isinstance(value, Offset):
        value = Offset(value.base, value.offset + offset, value.pos, value.end)
    return Init(value, True, init.mask, None, init.pos, end)


def nothing(stream: TokenStream, type_word: str, pos: int) -> list[tuple[Declarator, None]]:
    """A declaration without a name."""
    stream.diagnostics.warning("this declares nothing", pos, pos + len(type_word))
    return []


def without_space(stream: TokenStream, declarators: list[Declarator]) -> None:
    """``.u32 x;`` without a state space: what its variables are is not known."""
    for name, pos, _, _, _ in declarators:
        stream.error(f"'{name}' has no state space: expected .reg, .global or the like before its type", pos, pos + len(name))
        stream.diagnostics.damage.names.add(name)


def parameter_without_space(stream: TokenStream, declarator: Declarator) -> None:
    """ptxas finds it at its name if the function has a body, else at what follows."""
    name, pos, end, _, _ = declarator
    head = _HEAD_END.search(stream.text, end)
    place = (pos, end) if head and head[0] == "{" else stream.seen(pos, end)
    stream.error(f"the parameter '{name}' has no state space: expected .param before its type", *place)


def one_dimension(stream: TokenStream, parameter: Variable) -> None:
    if len(parameter.dims) > 1:
        stream.extension(f"the parameter '{parameter.name}' has several extents; it may have one", parameter.pos, parameter.end)


def numbered(stream: TokenStream, prefix: Name, count: int) -> list[Name]:
    """``L<3>`` in a target list: L0, L1 and L2."""
    stream.numbered_targets += count
    if stream.numbered_targets > MOST_TARGETS:
        stream.error(f"there are more than {MOST_TARGETS} numbered targets", prefix.pos, prefix.end)
        count = 0
    return [Name(f"{prefix.text}{index}", prefix.pos, prefix.end) for index in range(count)]


def file(stream: TokenStream, index: int, name: str, pos: int, end: int) -> None:
    """``.file index "name"``, in module scope; ``end`` is where more might have followed."""
    files = stream.module.files
    if stream.scopes:
        stream.extension("'.file' stands inside a function", pos, pos + len(".file"))
    elif index in files:
        stream.extension(f"'.file' {index} is given twice", *stream.seen(pos, end))
    elif stream.module.version is None:
        stream.extension("'.version' must be the first directive", pos, pos + len(".file"))
    files[index] = name


def plain_name(stream: TokenStream, name: Name, what: str) -> None:
    """Report a dot in a declared name (the lexer reads ``a.b`` as one word)."""
    if "." in name.text or name.text == WARP_SIZE_NAME or (name.text == "_" and what != "variable"):
        stream.error(f"'{name.text}' is not a name for a {what}", name.pos, name.end)
