"""Where variables live: offsets in the module's global and constant blocks, in shared and in local windows.

Addresses are never constants in the code: they come from the warp structure (base) plus these offsets, so object code can
be cached and loaded anywhere.
"""

from __future__ import annotations

from copy import copy

from ptxemu._runtime import ffi
from ptxemu.errors import InputError
from ptxemu.ir import Function, Module, Reloc, Variable

OPAQUE = ("surfref", "texref", "samplerref")
CODE_ALIGN = 16
STACK_ALIGN = 16
_FIELD_TYPES = {4: "i32", 8: "i64"}


def align_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def place(variables: list[Variable], minimum: int = 1) -> tuple[dict[Variable, int], int]:
    """Offsets of variables laid out in order at their alignment, and the total size."""
    offsets: dict[Variable, int] = {}
    end = 0
    for variable in variables:
        end = align_up(end, max(variable.align, minimum))
        offsets[variable] = end
        end += variable.size
    return offsets, end


class ModuleLayout:
    """The blocks of a module's ``.global`` and ``.const`` variables and its table of opaque handles.

    ``offsets`` maps a variable to its offset in its block; ``handles`` lists the opaque variables, ``handle_index`` gives
    the index of each in the table of u64 handles (arrays take one entry for each element).
    """

    def __init__(self, module: Module) -> None:
        everything = list(module.variables.values())
        for function in module.functions.values():
            everything += [v for v in function.variables if v not in everything]
        self.functions = list(module.functions)
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

    def function_address(self, function: Function) -> int:
        """The address of a function as a value: distinct and never null, but not of readable memory."""
        return CODE_ALIGN * (self.functions.index(function.name) + 1)

    def images(self, global_base: int, const_base: int, handles: dict[Variable, int] | None = None) -> tuple[bytes, bytes]:
        """The initial bytes of both blocks once their addresses are known.

        ``handles`` gives the handle values that initialisers naming a surfref or texref store.
        """
        bases = {"global": global_base, "const": const_base}

        def address(reloc: Reloc) -> int:
            target = reloc.target
            if not isinstance(target, Variable):
                return self.function_address(target) + reloc.addend
            if target.type.name in OPAQUE:
                return (handles or {}).get(target, 0) + reloc.addend
            if target.space not in bases:
                raise InputError(f"initialiser takes the address of '{target.name}' in .{target.space} memory")
            return bases[target.space] + self.offsets[target] + reloc.addend

        images = []
        for variables, size in ((self.globals, self.global_size), (self.consts, self.const_size)):
            image = bytearray(size)
            for variable in variables:
                start = self.offsets[variable]
                if variable.init is not None:
                    image[start : start + len(variable.init)] = variable.init
                for reloc in variable.relocs:
                    value = address(reloc) >> reloc.shift & (1 << 8 * reloc.size) - 1
                    at = start + reloc.offset
                    image[at : at + reloc.size] = value.to_bytes(reloc.size, "little")
            images.append(bytes(image))
        return images[0], images[1]


class KernelLayout:
    """The shared and local windows and the parameters of one kernel.

    ``dynamic`` shared variables (``.extern .shared x[]``) all start where static shared memory ends.
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
        self._place_local(variables)

    def of_function(self, variables: list[Variable]) -> KernelLayout:
        """The layout for a device function of the kernel: the same shared window, and local variables in a frame that
        starts where its caller's stack ends."""
        layout = copy(self)
        layout.framed = True
        layout.params = {}
        layout._place_local(variables)
        return layout

    def _place_local(self, variables: list[Variable]) -> None:
        local = [v for v in variables if v.space == "local"]
        self.local, end = place(local)
        self.local_align = max([STACK_ALIGN, *(v.align for v in local)])
        self.local_bytes = align_up(end, STACK_ALIGN)

    @staticmethod
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
