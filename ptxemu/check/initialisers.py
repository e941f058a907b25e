"""Initial values of variables: from syntax to bytes and relocations (PTX ISA, "Initializers")."""

from __future__ import annotations

from collections.abc import Callable

from ptxemu.check.typerules import float_bits
from ptxemu.ir.ops import Function, Reloc, SymRef, Variable
from ptxemu.ir.types import TYPES
from ptxemu.syntax import ast
from ptxemu.text.errors import Diagnostics, UnsupportedError

SURFACE_FIELDS = frozenset({"width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout"})
SAMPLER_FIELDS = frozenset(
    {"addr_mode_0", "addr_mode_1", "addr_mode_2", "filter_mode", "force_unnormalized_coords"}
)  # fmt: skip
FIELDS = {
    "surfref": SURFACE_FIELDS,
    "samplerref": SAMPLER_FIELDS,
    "texref": (SURFACE_FIELDS | SAMPLER_FIELDS) - {"force_unnormalized_coords"}
    | {"normalized_coords", "num_mipmap_levels", "num_samples"},
}
SYMBOLIC = {"wrap": 0, "mirror": 3, "clamp_ogl": 4, "clamp_to_edge": 1, "clamp_to_border": 2, "nearest": 0, "linear": 1}
GAP = 64  # bytes between two initial values that still make one run

Initialiser = ast.Init | ast.InitList
FindSymbol = Callable[[ast.Name], SymRef | None]


class InitialiserError(Exception):
    """An initialiser is wrong; ``node`` is where."""

    def __init__(self, message: str, node: Initialiser) -> None:
        super().__init__(message)
        self.message = message
        self.node = node


class _Runs:
    """Bytes written in the order of their offsets, as few runs: a short text may initialise few bytes of a huge variable."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, bytearray]] = []

    def put(self, offset: int, data: bytes) -> None:
        if self._runs:
            start, run = self._runs[-1]
            gap = offset - start - len(run)
            if gap <= GAP:
                run.extend(bytes(gap) + data)
                return
        self._runs.append((offset, bytearray(data)))

    def found(self) -> list[tuple[int, bytes]]:
        return [(offset, bytes(run)) for offset, run in self._runs]


class Encoder:
    """Fills in ``init``, ``relocs`` and ``fields`` of variables. ``find`` gives the symbol of a name or reports it."""

    def __init__(self, diagnostics: Diagnostics, find: FindSymbol) -> None:
        self.diagnostics = diagnostics
        self.find = find

    def encode(self, variable: Variable, init: Initialiser) -> None:
        try:
            if variable.type.kind == "opaque":
                variable.fields = self._opaque(variable, init)
            else:
                self._data(variable, init)
        except InitialiserError as error:
            self.diagnostics.error(error.message, error.node.pos, error.node.end)

    # ------------------------------------------------------------ data

    def _data(self, variable: Variable, init: Initialiser) -> None:
        dims = [extent or 0 for extent in variable.dims] + ([variable.vector] if variable.vector else [])
        runs = _Runs()
        self._fill(variable, runs, 0, variable.size, dims, init)
        variable.init = runs.found()

    def _fill(self, variable: Variable, runs: _Runs, offset: int, size: int, dims: list[int], init: Initialiser) -> None:
        """Encode one nesting level; the depth is bounded by the declared dimensions."""
        if not dims:
            if isinstance(init, ast.InitList):
                raise InitialiserError(f"'{variable.name}' takes one value here, not a list", init)
            self._scalar(variable, runs, offset, init)
            return
        if isinstance(init, ast.Init):
            raise InitialiserError(f"'{variable.name}' needs a list of values in braces", init)
        if len(init.items) > dims[0]:
            raise InitialiserError(f"'{variable.name}' has {dims[0]} elements here but {len(init.items)} values", init)
        if variable.vector and len(dims) == 1 and len(init.items) < variable.vector:
            raise InitialiserError(f"a vector of '{variable.name}' needs {variable.vector} values, not {len(init.items)}", init)
        step = size // dims[0] if dims[0] else 0
        rest = dims[1:]
        for item in init.items:
            self._fill(variable, runs, offset, step, rest, item)
            offset += step

    def _scalar(self, variable: Variable, runs: _Runs, offset: int, init: ast.Init) -> None:
        value, kind = init.value, variable.type
        if init.name is not None:
            raise InitialiserError(f"'{variable.name}' has no fields", init)
        if isinstance(value, ast.Int) and kind.kind in ("u", "s", "b"):
            bits = value.value & ((1 << kind.bits) - 1)
        elif isinstance(value, ast.Float) and kind.name in ("f32", "f64", "b32", "b64"):
            bits = float_bits(value, TYPES[f"f{kind.bits}"])
        elif isinstance(value, ast.Float) and kind.kind == "b":
            source = self.diagnostics.source
            raise UnsupportedError(f"{source.where(init.pos)}: a floating-point value of .{kind} is not supported")
        elif isinstance(value, (ast.Name, ast.Offset)) and kind.kind == "u":
            self._symbol(variable, offset, init, value)
            return
        else:
            raise InitialiserError(f"the initial value does not fit type {kind} of '{variable.name}'", init)
        runs.put(offset, bits.to_bytes(kind.bytes, "little"))

    def _symbol(self, variable: Variable, offset: int, init: ast.Init, value: ast.Name | ast.Offset) -> None:
        name, addend = (value.base, value.offset) if isinstance(value, ast.Offset) else (value, 0)
        found = self.find(name)
        if found is None:
            return
        symbol, size, shift = found.symbol, variable.type.bytes, 0
        if isinstance(symbol, Variable) and symbol.space not in ("global", "const"):
            raise InitialiserError(f"'{symbol.name}' in .{symbol.space} space has no constant address", init)
        if isinstance(symbol, Function):
            self._function(symbol, init, addend)
        if init.mask is not None and size == 2:
            raise InitialiserError(f"a byte of an address does not fit type {variable.type}", init)
        if init.mask is not None:
            shift = _mask_shift(init)
            size = 1
        elif size < 4:
            raise InitialiserError(f"the address of '{symbol.name}' does not fit type {variable.type}", init)
        variable.relocs.append(Reloc(offset, size, symbol, addend, init.generic, shift))

    def _function(self, symbol: Function, init: ast.Init, addend: int) -> None:
        """The address of a function is an opaque number."""
        if addend or init.generic:
            raise InitialiserError(f"the address of the function '{symbol.name}' takes no offset and is not generic", init)
        if symbol.kind == "entry":
            source = self.diagnostics.source
            raise UnsupportedError(f"{source.where(init.pos)}: the address of a kernel is not supported")

    # ------------------------------------------------------------ opaque types

    def _opaque(self, variable: Variable, init: Initialiser) -> list[dict[str, int]]:
        if isinstance(init, ast.Init):
            raise InitialiserError(f"a {variable.type} is initialised by '{{ field = value, ... }}'", init)
        if not variable.dims:
            return [self._record(variable, init)]
        count = variable.dims[0] or 0
        if len(init.items) > count:
            raise InitialiserError(f"'{variable.name}' has {count} elements but {len(init.items)} values", init)
        return [self._record(variable, item) for item in init.items]

    def _record(self, variable: Variable, init: Initialiser) -> dict[str, int]:
        if isinstance(init, ast.Init):
            raise InitialiserError(f"each element of '{variable.name}' needs braces", init)
        record: dict[str, int] = {}
        for item in init.items:
            if isinstance(item, ast.InitList) or item.name is None:
                raise InitialiserError(f"a {variable.type} is initialised by 'field = value' pairs", item)
            if item.name not in FIELDS[variable.type.name]:
                raise InitialiserError(f"a {variable.type} has no field '{item.name}'", item)
            record[item.name] = self._field(variable, item)
        return record

    def _field(self, variable: Variable, item: ast.Init) -> int:
        if isinstance(item.value, ast.Int):
            return item.value.value
        if isinstance(item.value, ast.Name) and item.value.text in SYMBOLIC:
            return SYMBOLIC[item.value.text]
        raise InitialiserError(f"'{item.name}' needs an integer", item)


def _mask_shift(init: ast.Init) -> int:
    """The bit position of the byte that a mask such as ``0xff00`` selects."""
    mask = init.mask or 0
    shift = (mask & -mask).bit_length() - 1
    if mask <= 0 or shift % 8 or mask >> shift != 0xFF or shift > 56:
        raise InitialiserError("the mask of an address must select one byte", init)
    return shift
