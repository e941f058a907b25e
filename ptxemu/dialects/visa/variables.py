"""The variables of a vISA kernel (vISA "Operands"): general, predicate and surface.

A hardware thread is a lane of the warp.  General variables are bytes, kept in 32-bit registers; where the parts of an
operand lie in them is known when the text is read.
"""

from __future__ import annotations

from msgspec import Struct

from ptxemu.dialects.build import Builder, Guard
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Reg, Variable
from ptxemu.ir.types import PRED, TYPES
from ptxemu.syntax.ast import Name
from ptxemu.text.suggestions import closest

GRF = 32  # bytes of a register: the unit of a region's row
ELEMENT_TYPES = {
    "ub": "u8", "b": "s8", "uw": "u16", "w": "s16", "ud": "u32", "d": "s32", "uq": "u64", "q": "s64", "hf": "f16", "f": "f32",
    "df": "f64",
}  # fmt: skip
MOST_BYTES = 4096
CHANNELS = 32
NULL_NAMES = ("V0", "%null")


class General(Struct, frozen=True, eq=False):
    """``count`` elements of ``type`` from byte ``offset`` of the registers ``words`` on."""

    name: str
    type: str
    count: int
    words: tuple[Reg, ...]
    offset: int = 0

    @property
    def size(self) -> int:
        return TYPES[ELEMENT_TYPES[self.type]].bytes

    @property
    def bytes(self) -> int:
        return self.count * self.size


class Predicate(Struct, frozen=True, eq=False):
    """Its bits, one for each channel."""

    name: str
    bits: tuple[Reg, ...]


class SurfaceVariable(Struct, frozen=True, eq=False):
    """The handle of the surface that it selects."""

    name: str
    variable: Variable | None
    handle: Reg


Declared = General | Predicate | SurfaceVariable
KINDS: dict[type, str] = {General: "a general variable", Predicate: "a predicate", SurfaceVariable: "a surface"}


class Scope(Struct):
    """What a kernel declares, by name; ``v_name`` gives a second one."""

    names: dict[str, Declared] = {}

    def add(self, name: Name, declared: Declared) -> None:
        if name.text in NULL_NAMES:
            raise TextError(f"'{name.text}' is the null variable", name.pos, name.end)
        if name.text in self.names:
            raise TextError(f"'{name.text}' is declared twice", name.pos, name.end)
        self.names[name.text] = declared

    def general(self, name: Name) -> General:
        found = self._find(name, General)
        assert isinstance(found, General)
        return found

    def predicate(self, name: Name) -> Predicate:
        found = self._find(name, Predicate)
        assert isinstance(found, Predicate)
        return found

    def surface(self, name: Name) -> SurfaceVariable:
        found = self._find(name, SurfaceVariable)
        assert isinstance(found, SurfaceVariable)
        return found

    def _find(self, name: Name, kind: type) -> Declared:
        found = self.names.get(name.text)
        if found is None and name.text in NULL_NAMES:
            raise TextError(f"'{name.text}' is the null variable, not {KINDS[kind]}", name.pos, name.end)
        if found is None:
            alike = (text for text, item in self.names.items() if isinstance(item, kind))
            raise TextError(f"'{name.text}' is not declared{closest(name.text, alike)}", name.pos, name.end)
        if not isinstance(found, kind):
            raise TextError(f"'{name.text}' is {KINDS[type(found)]}, not {KINDS[kind]}", name.pos, name.end)
        return found


def new_words(name: str, size: int) -> tuple[Reg, ...]:
    """Registers for ``size`` bytes."""
    return tuple(Reg(f"{name}.{4 * index}", TYPES["b32"]) for index in range(-(-size // 4)))


def new_bits(name: str, count: int) -> tuple[Reg, ...]:
    return tuple(Reg(f"{name}.{index}", PRED) for index in range(count))


# ---------------------------------------------------------------- parts of a variable


def read(body: Builder, variable: General, byte: int, size: int) -> Reg:
    """``size`` bytes, zero-extended to 32 bits, or 64 of them."""
    at = variable.offset + byte
    if size == 8:
        value = body.temp("b64")
        body.emit("mov.b64", value, (_word(body, variable, at), _word(body, variable, at + 4)))
        return value
    if size == 4:
        return _word(body, variable, at)
    value = body.temp("b32")
    first, shift = divmod(at, 4)
    if shift + size <= 4:
        body.emit("bfe.u32", value, variable.words[first], 8 * shift, 8 * size)
    else:
        body.emit("and.b32", value, _word(body, variable, at), (1 << 8 * size) - 1)
    return value


def _word(body: Builder, variable: General, at: int) -> Reg:
    first, shift = divmod(at, 4)
    if shift == 0:
        return variable.words[first]
    value = body.temp("b32")
    upper = variable.words[min(first + 1, len(variable.words) - 1)]
    body.emit("shf.r.wrap.b32", value, variable.words[first], upper, 8 * shift)
    return value


def write(body: Builder, variable: General, byte: int, size: int, value: Reg, guard: Guard | None) -> None:
    """Put the low bytes of a value into a variable."""
    at = variable.offset + byte
    if size == 8:
        low, high = body.temp("b32"), body.temp("b32")
        body.emit("mov.b64", (low, high), value)
        write(body, variable, byte, 4, low, guard)
        write(body, variable, byte + 4, 4, high, guard)
        return
    first, shift = divmod(at, 4)
    here = min(size, 4 - shift)
    if here == 4:
        body.emit("mov.b32", variable.words[first], value, guard=guard)
        return
    _insert(body, variable.words[first], value, shift, here, guard)
    if here < size:
        rest = body.temp("b32")
        body.emit("shr.u32", rest, value, 8 * here)
        _insert(body, variable.words[first + 1], rest, 0, size - here, guard)


def _insert(body: Builder, word: Reg, value: Reg, byte: int, size: int, guard: Guard | None) -> None:
    body.emit("bfi.b32", word, value, word, 8 * byte, 8 * size, guard=guard)
