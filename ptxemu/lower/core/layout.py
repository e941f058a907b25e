"""Where variables live: offsets in the module's global and constant blocks, in shared and in local windows.

Addresses are never constants in the code: they come from the warp structure (base) plus these offsets, so object code can
be cached and loaded anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from functools import cache

from ptxemu._runtime import ffi
from ptxemu.ir.ops import Function, Module, Variable
from ptxemu.ir.types import OPAQUE
from ptxemu.text.errors import InputError

CODE_ALIGN = 16
STACK_ALIGN = 16
MOST_HANDLES = 2**32 - 1
"""What entries count; a device has far fewer (``PE_MAX_SLOT``)."""
STARTS = {"const": "const_base", "param": "param_base"}
"""Of windows whose addresses are generic ones. 32 bits are the low half of that which is closest to the start."""
_FIELD_TYPES = {4: "i32", 8: "i64"}


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def place(variables: list[Variable], minimum: int = 1, start: int = 0) -> tuple[dict[Variable, int], int]:
    """Offsets of variables laid out in order at their alignment, from ``start`` on, and where they end."""
    offsets: dict[Variable, int] = {}
    end = start
    for variable in variables:
        end = align_up(end, max(variable.align, minimum))
        offsets[variable] = end
        end += variable.size
    return offsets, end


class ModuleLayout:
    """The blocks of a module's ``.global`` and ``.const`` variables and its table of opaque handles.

    ``offsets`` maps a variable to its offset in its block; ``handles`` lists the opaque variables, ``handle_index`` gives
    the index of each in the table of u64 handles (arrays take one entry for each element). Raises InputError if the table
    would be beyond all bounds.
    """

    def __init__(self, module: Module) -> None:
        own = (variable for function in module.functions.values() for variable in function.variables)
        everything = list(dict.fromkeys([*module.variables.values(), *own]))
        self.functions = {name: number for number, name in enumerate(module.functions)}
        opaque = [v for v in everything if v.type.name in OPAQUE and v.space != "param"]
        self.globals = [v for v in everything if v.space == "global" and v not in opaque]
        self.consts = [v for v in everything if v.space == "const"]
        global_offsets, self.global_size = place(self.globals)
        const_offsets, self.const_size = place(self.consts)
        self.offsets = {**global_offsets, **const_offsets}
        self.handles = opaque
        self.handle_index: dict[Variable, int] = {}
        self.handle_count = 0
        for variable in opaque:
            self.handle_index[variable] = self.handle_count
            self.handle_count += max(1, variable.size // 8)
        if self.handle_count > MOST_HANDLES:
            raise InputError(f"the handle table is full: the module declares {self.handle_count} surfaces, textures and samplers")

    def function_address(self, function: Function) -> int:
        """The address of a function as a value: distinct and never null, but not of readable memory."""
        return CODE_ALIGN * (self.functions[function.name] + 1)

    def align(self, variables: list[Variable]) -> int:
        """What the block of these variables must be aligned to."""
        return max((variable.align for variable in variables), default=1)


class KernelLayout:
    """The shared and local windows and the parameters of one kernel.

    ``dynamic`` shared variables (``.extern .shared x[]``) all start where static shared memory ends.
    ``incoming``: offsets of large parameters from the start of the frame, as the caller has it.
    ``framed``: offsets of local variables count from the frame of a call, not from the start of the window.
    ``explicit_cluster``: the kernel asks for a cluster itself (``%is_explicit_cluster``).
    """

    def __init__(
        self, module: ModuleLayout, variables: list[Variable], params: dict[Variable, int], explicit_cluster: bool = False
    ) -> None:
        self.module = module
        self.explicit_cluster = explicit_cluster
        self.params = params
        shared = [v for v in variables if v.space == "shared"]
        static = [v for v in shared if v.size]
        dynamic = [v for v in shared if not v.size]
        self.shared, end = place(static)
        self.static_shared = align_up(end, max([16, *(v.align for v in dynamic)])) if dynamic else end
        self.shared.update({v: self.static_shared for v in dynamic})
        self.dynamic = set(dynamic)
        self.framed = False
        self.incoming: dict[Variable, int] = {}
        self._place_local(variables)

    def of_function(self, variables: list[Variable], incoming: Mapping[Variable, int]) -> KernelLayout:
        """The layout for a device function of the kernel: the same shared window, and local variables in a frame that
        starts where its caller's stack ends, with the parameters that its caller has left there."""
        layout = copy(self)
        layout.framed = True
        layout.params = {}
        layout.incoming = dict(incoming)
        layout._place_local(variables)
        return layout

    def _place_local(self, variables: list[Variable]) -> None:
        local = [v for v in variables if v.space == "local"]
        start = max((offset + variable.size for variable, offset in self.incoming.items()), default=0)
        self.local, end = place(local, start=start)
        self.local_align = max([STACK_ALIGN, *(v.align for v in local)])
        self.local_bytes = align_up(end, STACK_ALIGN)

    @staticmethod
    @cache
    def warp_field(name: str) -> tuple[int, str]:
        """Byte offset and LLVM type of a field of the warp structure; ``name`` may end in ``[i]``."""
        stem, _, index = name.partition("[")
        position = int(index.rstrip("]")) if index else 0
        for field, info in ffi.typeof("pe_warp").fields:
            if field == stem:
                kind = info.type
                while kind.kind == "array":
                    kind = kind.item
                size = ffi.sizeof(kind)
                return info.offset + position * size, "ptr" if kind.kind == "pointer" else _FIELD_TYPES[size]
        raise KeyError(name)
