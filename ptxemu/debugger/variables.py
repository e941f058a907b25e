"""Variables of CUDA C++ in a function that stands still: what DWARF says of them, and the registers and memory they are in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from ptxemu.debugger import inspect
from ptxemu.debugger.inspect import GLOBAL, Frame, Spot
from ptxemu.device.arena import Arena
from ptxemu.dwarf.entries import Entry
from ptxemu.dwarf.info import DebugInfo
from ptxemu.dwarf.locations import GENERIC, Place
from ptxemu.dwarf.names import Tag
from ptxemu.dwarf.stream import DwarfError
from ptxemu.dwarf.types import REFERENCES, Type
from ptxemu.interpreter.image import Image
from ptxemu.interpreter.translate import Code
from ptxemu.ir.ops import Module, Variable
from ptxemu.text.errors import InputError
from ptxemu.text.source import part_at
from ptxemu.text.symbols import meant

POINTER_BYTES = 8


@lru_cache(maxsize=8)
def debug_info(text: str) -> DebugInfo:
    return DebugInfo(text)


def info_of(module: Module, code: Code) -> DebugInfo:
    """That of the text that a function is in."""
    return debug_info(part_at(module.source, code.function.pos).text)


def described(module: Module, code: Code) -> bool:
    """Whether there is DWARF of a function."""
    return info_of(module, code).function(code.labels) is not None


class Value(Struct, frozen=True):
    """What has a type: in memory at ``place``, or else ``bits``.

    ``count``: so many of the type in a row; ``field`` are the first bit and the number of them in a bit field.
    """

    type: Type
    place: Place | None
    bits: int = 0
    count: int | None = None
    field: tuple[int, int] | None = None

    @property
    def size(self) -> int:
        return self.type.size * (1 if self.count is None else self.count)


class Scope:
    """The variables that a frame sees, as DWARF has them."""

    def __init__(self, frame: Frame, arena: Arena, image: Image) -> None:
        self.frame, self.arena, self.image = frame, arena, image
        self.info, self.labels = info_of(image.module, frame.code), frame.code.labels

    # ------------------------------------------------------------ variables

    def names(self, tag: Tag) -> Iterator[str]:
        """Of the variables, or of the formal parameters, that are not hidden by others, in the order of their declarations."""
        seen: set[str] = set()
        for entry in self.info.visible(self.labels, self.frame.pc):
            name = self.info.name(entry)
            if name and name not in seen and entry.tag == tag:
                yield name
            seen.add(name)

    @property
    def known(self) -> bool:
        """Whether there is DWARF of the function."""
        return self.info.function(self.labels) is not None

    def find(self, name: str) -> Value | None:
        """A variable by name: one of the function, or else of the file. Raises DwarfError if it is nowhere."""
        visible = (entry for entry in self.info.visible(self.labels, self.frame.pc) if self.info.name(entry) == name)
        entry = next(visible, None) or self._global(name)
        if entry is None:
            return None
        found, kind = self.info.location(entry, self, self.labels, self.frame.pc), Type(self.info, self.info.type(entry))
        value = Value(kind, found) if isinstance(found, Place) else Value(kind, None, found)
        return self.target(value) if kind.plain.tag in REFERENCES else value

    def _global(self, name: str) -> Entry | None:
        """A variable of a file, with or without its namespaces."""
        known = {self.info.name(entry): entry for entry in self.info.globals()}
        return next((known[symbol] for symbol in meant(name, known)), None)

    def target(self, value: Value) -> Value:
        """What a pointer or a reference leads to."""
        return Value(value.type.plain.target, Place(GENERIC, self.number(value)))

    # ------------------------------------------------------------ what they hold

    def raw(self, value: Value) -> bytes:
        """Its bytes. Raises InputError if they cannot be read."""
        size = value.size
        if value.place is None:
            return (value.bits & (1 << 8 * size) - 1).to_bytes(size, "little")
        return self.read(value.place, size)

    def number(self, value: Value) -> int:
        """Its bits as a number."""
        found = int.from_bytes(self.raw(value), "little")
        if value.field is not None:
            first, count = value.field
            found = found >> first & (1 << count) - 1
        return found

    def read(self, place: Place, size: int) -> bytes:
        spot = self.spot(place, size)
        return inspect.read(self.arena, self.frame.lane, spot.space, spot.address, size)

    def spot(self, place: Place, size: int) -> Spot:
        """The same place, in its own space."""
        space, address = place.space, place.address
        if space == GENERIC:
            space, address = inspect.space_of(self.frame.lane, address)
        return Spot(space, address, size)

    def address(self, value: Value) -> int:
        """Its generic address."""
        if value.place is None:
            raise InputError("what is in a register has no address")
        spot = self.spot(value.place, 0)
        return spot.address if spot.space == GLOBAL else spot.address + inspect.windows(self.frame.lane)[spot.space][0]

    # ------------------------------------------------------------ what expressions of DWARF look at

    def register(self, name: str) -> int:
        found = inspect.registers_of(self.frame.code).get(name)
        if found is None:
            raise DwarfError("optimized out")
        return self.frame.register(found)

    def word(self, place: Place) -> int:
        return int.from_bytes(self.read(place, POINTER_BYTES), "little")

    def symbol(self, name: str) -> Place:
        """A variable of PTX, in its space."""
        code, kernel = self.frame.code, self.image.code.function
        for parameter in kernel.params if code.function is kernel else ():
            if parameter.variable.name in (name, f"{kernel.name}.{name}"):
                return Place("param", parameter.offset)
        for variable, offset in code.offsets.items():
            if _called(variable, name, code):
                return Place("local", self.frame.base + offset)
        layout = self.image.layout
        for variable, offset in layout.shared.items():
            if _called(variable, name, code):
                return Place("shared", offset)
        for variable, offset in layout.module.offsets.items():
            if _called(variable, name, code):
                base = self.frame.lane.warp.w.global_base
                return Place("const", offset) if variable.space == "const" else Place(GLOBAL, base + offset)
        raise DwarfError(f"there is no {name} in the PTX")


def _called(variable: Variable, name: str, code: Code) -> bool:
    """Whether a variable is the one that a name means in a function."""
    return variable.name in (name, f"{code.function.name}.{name}")
