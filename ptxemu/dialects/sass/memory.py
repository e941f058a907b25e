"""What a SASS program finds outside its registers: constant banks and the pool of texture headers."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.dialects.build import Builder, surface
from ptxemu.dialects.sass.ast import Constant
from ptxemu.dialects.slots import Slots
from ptxemu.dialects.text import TextError
from ptxemu.ir.ops import Module, Reg, SReg, Variable
from ptxemu.ir.types import TYPES, U64
from ptxemu.isa.table import internal_row
from ptxemu.syntax.ast import Int, Name

PARAMETERS = 0x140  # where the kernel's parameters start in bank 0 (sm_50 to sm_62)
PARAMETER_BYTES = 4096
DRIVER_WORDS = {
    0x08: "ntid.x", 0x0C: "ntid.y", 0x10: "ntid.z", 0x14: "nctaid.x", 0x18: "nctaid.y", 0x1C: "nctaid.z",
}  # fmt: skip
BANKS = 18
BANK_BYTES = 1 << 16
HEADERS = 1 << 20  # header pointers have 20 bits
BIAS = 1 << 26
"""Where device memory starts in a program's address space, if no window is in the way."""


POINTER = internal_row("_sass_pointer", "d, a", lower="sass_pointer", does="pure")


def bias_of(windows: Sequence[int]) -> int:
    """Where device memory starts in a program's address space: behind its windows (first and last address of each)."""
    return max(BIAS, -(-max(windows) // BIAS) * BIAS)


def program_address(body: Builder, pointer: Reg, bias: int) -> Reg:
    """A device pointer as an address of the program's own 40-bit space (:mod:`ptxemu.dialects.sass.lower`)."""
    address = body.temp("b64")
    body.add(POINTER, {"bias": str(bias)}, (address,), (pointer,), (U64,), (U64,))
    return address


class Pool(Slots):
    """The pool of texture headers: ``names`` by index. Each is a surface variable that the host binds.

    A header that nobody declared, or beyond MaximumIndex, is an invalid texture (SURED reference, "#tsPtrIdxU13").
    """

    def __init__(self, module: Module) -> None:
        super().__init__(module)
        self.names: dict[int, Name] = {}
        self.spelled: set[str] = set()
        self.maximum: int | None = None

    def add(self, index: Int, name: Name) -> None:
        if not 0 <= index.value < HEADERS:
            raise TextError("a header index has 20 bits", index.pos, index.end)
        if index.value in self.names:
            raise TextError(f"header {index.value} is declared twice", index.pos, index.end)
        if name.text in self.spelled:
            raise TextError(f"header '{name.text}' is declared twice", name.pos, name.end)
        self.names[index.value] = name
        self.spelled.add(name.text)
        self.variables[index.value] = surface(self.module, name.text, name.pos)

    def set_maximum(self, index: Int) -> None:
        if not 0 <= index.value < HEADERS:
            raise TextError("a header index has 20 bits", index.pos, index.end)
        self.maximum = index.value


class Banks:
    """The constant banks of a kernel: words given by ``.const``, parameters, and what the driver puts before them."""

    def __init__(self, pool: Pool, bias: int = BIAS) -> None:
        self.pool = pool
        self.bias = bias  # of the program's address space
        self.words: dict[tuple[int, int], int] = {}
        self.given: set[tuple[int, int]] = set()  # words of this kernel, or of the module: a kernel may replace those
        self.params: list[tuple[int, Variable, bool]] = []  # offset in bank 0, whether it is a pointer
        self.header_bank = 0
        self.names: set[str] = set()
        self.files = 0  # register files

    def fresh(self) -> Banks:
        """The banks of the next kernel: the words of the module, no parameters."""
        made = Banks(self.pool, self.bias)
        made.words, made.header_bank = dict(self.words), self.header_bank
        return made

    def set_word(self, place: Constant, value: int) -> None:
        if not 0 <= place.bank < BANKS or not 0 <= place.offset <= BANK_BYTES - 4 or place.offset % 4:
            raise TextError(f"there are banks 0 to {BANKS - 1} of 64 KiB; words lie at multiples of 4", place.pos, place.end)
        if place.bank == 0 and self._param_at(place.offset) is not None:
            raise TextError("a parameter lies here", place.pos, place.end)
        if place.bank == 0 and place.offset in DRIVER_WORDS:
            raise TextError("the extents of the launch lie here", place.pos, place.end)
        if (place.bank, place.offset) in self.given:
            raise TextError(f"c[0x{place.bank:x}][0x{place.offset:x}] is given twice", place.pos, place.end)
        self.given.add((place.bank, place.offset))
        self.words[place.bank, place.offset] = value

    def add_param(self, body: Builder, name: Name, type: str, offset: int | None, *, pointer: bool) -> None:
        """A parameter, by default at the next place that is aligned."""
        self._new_name(name)
        end = max((start + variable.size for start, variable, _ in self.params), default=PARAMETERS)
        size = TYPES[type].bytes
        start = -(-end // size) * size if offset is None else offset
        if start % size or not PARAMETERS <= start <= PARAMETERS + PARAMETER_BYTES - size:
            limits = f"from 0x{PARAMETERS:x} on, {PARAMETER_BYTES} bytes"
            raise TextError(f"'{name.text}' must lie at a multiple of {size} in the parameters ({limits})", name.pos, name.end)
        if any(self._param_at(byte) or (0, byte) in self.words for byte in range(start, start + size, 4)):
            raise TextError(f"'{name.text}' overlaps another parameter or constant", name.pos, name.end)
        self.params.append((start, body.param(name.text, type, name.pos, start - PARAMETERS), pointer))

    def add_register_file(self, body: Builder, name: Name) -> Variable:
        """An array parameter that no constant bank shows."""
        self._new_name(name)
        self.files += 1
        return body.param(name.text, "u64", name.pos, PARAMETER_BYTES + 8 * self.files, row=(4, 1))

    def _new_name(self, name: Name) -> None:
        if name.text in self.names:
            raise TextError(f"'{name.text}' is declared twice", name.pos, name.end)
        self.names.add(name.text)

    def _param_at(self, offset: int) -> tuple[int, Variable, bool] | None:
        return next((item for item in self.params if item[0] <= offset < item[0] + item[1].size), None)

    def word(self, body: Builder, bank: int, offset: int) -> Reg | SReg | int | None:
        """The word at a place, or None if there is none; may append ops that load it."""
        if (bank, offset) in self.words:
            return self.words[bank, offset]
        if bank != 0:
            return None
        found = self._param_at(offset)
        if found is None:
            return SReg(DRIVER_WORDS[offset]) if offset in DRIVER_WORDS else None
        start, variable, pointer = found
        if not pointer:
            return body.load_param(variable, "b32", offset - start)
        whole, low, high = body.load_param(variable, "u64"), body.temp("b32"), body.temp("b32")
        body.emit("mov.b64", (low, high), program_address(body, whole, self.bias))
        return high if offset - start else low
