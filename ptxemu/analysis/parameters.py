"""What a kernel does with the memory and the images that its parameters stand for.

A parameter of 64 bits is a pointer if memory is accessed at what is made of it: through moves, ``cvta`` and sums it is followed
to the accesses, whose types tell those of the elements.  A handle leads to instructions on surfaces and textures.  What is
followed is a register, wherever it is written.  Where several parameters may be in one, or one goes where it cannot be followed
(memory, calls, other arithmetic), nothing is said of them: what is said is true of every access.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cache

from msgspec import Struct

from ptxemu.device.module_info import POINTER_USE, Use
from ptxemu.ir.graph import registers
from ptxemu.ir.ops import Addr, MemoryAccess, Op, Operand, Reg, SymRef, Variable, items_of
from ptxemu.ir.types import OPAQUE, ScalarType
from ptxemu.isa.table import Row

BYTES = 8  # of a pointer or a handle
ROUNDS = 4  # over the ops; with more, the time could grow with the square of their number
IMAGES = frozenset(OPAQUE.values())
ORDERING = ("min", "max")  # of signed integers: they order the bits of floats as well

Place = tuple[Variable, int]
"""A parameter or an opaque variable, and the byte of it where a pointer or a handle begins."""
Places = frozenset[Place]
Copy = tuple[Reg, Operand]
"""A register, and what comes into it by other things than ops."""
NOWHERE: Places = frozenset()


def uses_of(ops: Collection[Op], variables: Collection[Variable], copies: Iterable[Copy] = ()) -> dict[Place, Use]:
    """What ops do with what variables hold: the parameters of the kernel, and opaque variables, which stand for themselves."""
    flow = _Flow(frozenset(variables), tuple(copies))
    if not flow.follow(ops):
        return {}
    accesses = _Accesses(flow)
    for op in ops:
        accesses.look(op)
    for op in ops:
        accesses.calculate(op)
    uses = {place: found.use(place[1]) for place, found in accesses.found.items() if place not in accesses.lost}
    return {place: use for place, use in sorted(uses.items(), key=lambda item: item[0][1]) if use is not None}


class _Flow:
    """Which parameters a register may have been made of."""

    def __init__(self, variables: frozenset[Variable], copies: tuple[Copy, ...]) -> None:
        self._variables, self._copies = variables, copies
        self._origins: dict[Reg, Places] = {}

    def follow(self, ops: Collection[Op]) -> bool:
        """Find that out; False if it takes too long."""
        for op in ops:
            if op.effects.accesses:
                self._load(op)
        steps = [(dst, base) for op in ops for base in _bases(op) for dst in op.dsts]
        for _ in range(ROUNDS):
            before = self._size()
            for dst, source in steps:
                self._add(dst, self.of(source))
            for dst, source in self._copies:
                self._add(dst, self.of(source))
            if self._size() == before:
                return True
        return False

    def of(self, operand: object) -> Places:
        """The parameters that an operand, or the base of an address, may be made of."""
        if isinstance(operand, Addr):
            operand = operand.base
        if isinstance(operand, Reg):
            return self._origins.get(operand, NOWHERE)
        at = self._place(operand)
        return frozenset({at}) if at is not None and at[0].type.name in OPAQUE else NOWHERE

    def touches(self, op: Op) -> bool:
        """Whether an operand comes from a parameter."""
        for source in op.srcs:
            for item in items_of(source):
                if (item.base if isinstance(item, Addr) else item) in self._origins or isinstance(item, SymRef):
                    return True
        return op.call is not None

    def _load(self, op: Op) -> None:
        """Parameters are known where they are loaded in one piece."""
        at = next((at for source in op.srcs if isinstance(source, Addr) and (at := self._place(source))), None)
        if at is not None and op.access.space == "param" and op.access.stated.reads:
            for number, (dst, kind) in enumerate(zip(op.dsts, op.dst_types, strict=True)):
                if kind.bytes == BYTES:
                    self._add(dst, frozenset({(at[0], at[1] + number * BYTES)}))

    def _place(self, operand: object) -> Place | None:
        base = operand.base if isinstance(operand, Addr) else operand
        if isinstance(base, SymRef) and isinstance(base.symbol, Variable) and base.symbol in self._variables:
            return base.symbol, base.offset
        return None

    def _add(self, dst: Reg | None, origins: Places) -> None:
        if dst is not None and origins:
            self._origins[dst] = self._origins.get(dst, NOWHERE) | origins

    def _size(self) -> int:
        return sum(map(len, self._origins.values()))


class _Found(Struct):
    """What the accesses to one thing have in common."""

    kinds: set[str] = set()
    elements: set[ScalarType | None] = set()
    geometries: set[str] = set()
    reads: bool = False
    writes: bool = False
    numeric: bool = False

    def use(self, offset: int) -> Use | None:
        if len(self.kinds) != 1:
            return None
        (kind,), element = self.kinds, _common(self.elements)
        geometry = next(iter(self.geometries)) if len(self.geometries) == 1 else ""
        return Use(offset, kind, element, geometry, self.reads, self.writes, self.numeric and bool(element))


class _Accesses:
    """What is done at the registers that come from parameters: ``found``. ``lost`` are parameters that cannot be followed.

    ``_moved`` are registers that integers are loaded into or stored from, and where these lie.
    """

    def __init__(self, flow: _Flow) -> None:
        self._flow = flow
        self.found: dict[Place, _Found] = {}
        self.lost: set[Place] = set()
        self._moved: dict[Reg, set[Place]] = {}

    def look(self, op: Op) -> None:
        """Note what an op does with the parameters that its operands come from."""
        if not self._flow.touches(op):
            return
        images = [(name, kind) for name, kind in _images_of(op.row) if op.get(name) is not None]
        for name, kind in images:
            self._image(op, name, kind)
        for access in op.accesses if op.effects.accesses and not images else ():
            if access.space != "param":
                self._memory(op, access)
        if any(kind.name != "pred" for kind in op.dst_types) or op.effects.accesses or op.call is not None:
            self._lose(op, [op[name] for name, _ in images])

    def _image(self, op: Op, name: str, kind: str) -> None:
        for found in self._at(self._flow.of(op[name])):
            found.kinds.add(kind)
            if "geom" in op.mods and kind != "sampler":
                found.geometries.add(op.mods["geom"])
            if "dtype" in op.mods and kind == "texture":
                found.elements.add(op.type("dtype"))
            stated = [access for access in op.effects.accesses if access.operand == name]
            found.reads |= any(access.reads for access in stated)
            found.writes |= any(access.writes for access in stated)

    def _memory(self, op: Op, access: MemoryAccess) -> None:
        origins = self._flow.of(access.address)
        data = access.stated.data
        element = op.type_of(data) if data else None
        for found in self._at(origins):
            found.kinds.add(POINTER_USE)
            found.elements.add(element)
            found.reads |= access.stated.reads
            found.writes |= access.stated.writes
        if element is None or element.kind not in "us":
            return
        if access.stated.kind == "update":
            for found in self._at(origins):
                found.numeric |= op.mods.get("op") not in ORDERING
            return
        value = op[data]
        for item in value if isinstance(value, tuple) else registers(value):
            if isinstance(item, Reg) and len(origins) == 1:
                self._moved.setdefault(item, set()).update(origins)

    def _at(self, origins: Places) -> Iterator[_Found]:
        """What is known of a parameter; of several, one of which it is, nothing can be."""
        if len(origins) > 1:
            self.lost |= origins
            return
        for place in origins:
            yield self.found.setdefault(place, _Found())

    def _lose(self, op: Op, handles: list[Operand]) -> None:
        """Forget parameters of which an op makes something else."""
        followed = [*handles, *_bases(op)]
        for source in op.srcs:
            if source not in followed and not isinstance(source, Addr):
                for register in registers(source):
                    self.lost |= self._flow.of(register)
        for argument in op.call.args if op.call is not None else ():
            self.lost |= self._flow.of(argument)

    def calculate(self, op: Op) -> None:
        """Integers that are loaded or stored are numbers if sums or products are made of them.

        Shifts and comparisons say nothing: sorts do that with the bits of floats.
        """
        if self._moved.keys().isdisjoint((*op.srcs, *op.dsts)):
            return
        if "numbers" not in op.row.traits:
            return
        for operand, kind in (*zip(op.srcs, op.src_types), *zip(op.dsts, op.dst_types)):
            if isinstance(operand, Reg) and operand in self._moved and kind is not None and kind.kind in "us":
                for place in self._moved[operand]:
                    self.found[place].numeric = True


def _bases(op: Op) -> list[Operand]:
    """The operands of an op that its only result may be an address near to."""
    if len(op.dsts) != 1 or op.dst_types[0].bits != 8 * BYTES:
        return []
    return [op[name] for name in _bases_of(op.row)]


@cache
def _bases_of(row: Row) -> tuple[str, ...]:
    return tuple(name for name in sorted(row.names) if f"base:{name}" in row.traits)


@cache
def _images_of(row: Row) -> tuple[tuple[str, str], ...]:
    """The operands that are handles, and of what."""
    found = [(pattern.name, pattern.type) for pattern in row.operands if pattern.type in IMAGES]
    return (*found, ("sampler", "sampler")) if "sampler" in row.names else tuple(found)


def _common(elements: set[ScalarType | None]) -> str:
    """The one type that elements may be of, one of bits if only the size is known, or nothing."""
    typed = {element for element in elements if element is not None and element.kind != "b"}
    bits = {element for element in elements if element is not None} - typed
    if None in elements or len({element.bits for element in typed | bits}) != 1:
        return ""
    kinds = {element.kind for element in typed}
    if kinds == {"u", "s"}:
        return next(element.name for element in typed if element.kind == "s")
    return next(iter(typed or bits)).name if len(typed) <= 1 else ""
