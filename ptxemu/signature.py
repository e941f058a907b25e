"""What a launch needs to know of a module besides its code: kernels, parameters, variables and their first contents.

It is plain data, so that the disk cache can hold it and a warm start need not parse the PTX at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

OPAQUE_TYPES = ("surfref", "texref", "samplerref")
GLOBAL, CONST, HANDLE = "global", "const", "handle"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an entry. ``elements`` is None for a scalar, else the element count of an array (a struct).

    ``row`` is not None for a register file of a dialect: the size and the number of each thread's elements.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    elements: int | None
    pointer: tuple[str, int] | None
    row: tuple[int, int] | None = None

    @property
    def opaque(self) -> bool:
        return self.type in OPAQUE_TYPES


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """An entry: its parameters and what binds a launch: performance directives (``maxntid``, ``reqntid`` ...), and
    ``domain`` for programs of points: the extents of their rectangle, or nothing for as many as the grid has.

    ``unsynced`` are pairs of surfaces, one written and one read, whose memory should not be the same.
    """

    name: str
    parameters: tuple[Parameter, ...]
    param_bytes: int
    limits: dict[str, tuple[int, ...]]
    unsynced: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class VariableInfo:
    """A module variable in global or constant memory, at ``offset`` of the module's block of that space."""

    name: str
    space: str
    type: str
    vector: int
    dims: tuple[int, ...]
    size: int
    offset: int


@dataclass(frozen=True, slots=True)
class HandleInfo:
    """An opaque module variable and the indices of its elements in the module's table of handles.

    ``fields`` are the initialisers of its elements, which preset what ``suq`` and ``txq`` report (PTX ISA, "Opaque types").
    """

    name: str
    type: str
    first: int
    count: int
    fields: tuple[dict[str, int], ...]


@dataclass(frozen=True, slots=True)
class Relocation:
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


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """A module's kernels and memory; the images are the first contents of the global and the constant block."""

    kernels: dict[str, KernelInfo]
    variables: dict[str, VariableInfo]
    handles: dict[str, HandleInfo]
    relocations: tuple[Relocation, ...]
    global_image: bytes
    const_image: bytes

    @property
    def handle_count(self) -> int:
        return sum(handle.count for handle in self.handles.values())

    def images(self, bases: dict[str, int], handles: Sequence[int]) -> dict[str, bytearray]:
        """The contents of the blocks at ``bases``, for a table of ``handles``."""
        images = {GLOBAL: bytearray(self.global_image), CONST: bytearray(self.const_image)}
        for item in self.relocations:
            base = handles[item.index] if item.base == HANDLE else bases[item.base]
            value = (base + item.addend) % 2**64 >> item.shift
            images[item.space][item.offset : item.offset + item.size] = value.to_bytes(8, "little")[: item.size]
        return images

    def to_json(self) -> dict[str, Any]:
        """Everything but the images, as JSON data."""
        return {
            "kernels": [asdict(item) for item in self.kernels.values()],
            "variables": [asdict(item) for item in self.variables.values()],
            "handles": [asdict(item) for item in self.handles.values()],
            "relocations": [asdict(item) for item in self.relocations],
            "global_size": len(self.global_image),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], images: bytes) -> ModuleInfo:
        """The inverse of :meth:`to_json`; ``images`` is the global image followed by the constant image."""
        kernels = [_kernel_from_json(item) for item in data["kernels"]]
        variables = [VariableInfo(**{**item, "dims": tuple(item["dims"])}) for item in data["variables"]]
        handles = [HandleInfo(**{**item, "fields": tuple(item["fields"])}) for item in data["handles"]]
        return cls(
            {item.name: item for item in kernels},
            {item.name: item for item in variables},
            {item.name: item for item in handles},
            tuple(Relocation(**item) for item in data["relocations"]),
            images[: data["global_size"]],
            images[data["global_size"] :],
        )


def _kernel_from_json(data: dict[str, Any]) -> KernelInfo:
    parameters = []
    for item in data["parameters"]:
        pairs = {key: tuple(item[key]) if item[key] else None for key in ("pointer", "row")}
        parameters.append(Parameter(**{**item, **pairs}))
    limits = {name: tuple(values) for name, values in data["limits"].items()}
    unsynced = tuple((written, read) for written, read in data["unsynced"])
    return KernelInfo(data["name"], tuple(parameters), data["param_bytes"], limits, unsynced)
