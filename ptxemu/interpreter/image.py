"""A kernel ready to be interpreted, with the functions that it reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from msgspec import Struct

from ptxemu.dialects import PTX
from ptxemu.driver.requirements import find_entry, require_linked, require_local, require_supported
from ptxemu.interpreter.control import targets
from ptxemu.interpreter.translate import METHODS, Code, Translator
from ptxemu.ir.distributed import are_ranked
from ptxemu.ir.ops import Function, Module
from ptxemu.isa import rows
from ptxemu.lower.core.emit import ELEMENTWISE
from ptxemu.lower.core.layout import KernelLayout, ModuleLayout
from ptxemu.text.errors import UnsupportedError

LOWERINGS = (
    "integer", "bitfield", "float", "half", "compare", "logic", "convert", "fp8", "fixed_point", "stochastic", "video", "data",
    "approx",
)  # fmt: skip
METHOD_MODULES = ("memory", "control", "warp", "sync", "atomics", "surfaces", "matrices", "asynchronous", "tensors", "tcgen05")
CLUSTERS = {"explicitcluster", "reqnctapercluster"}


class Image(Struct, frozen=True, eq=False):
    """A kernel of ``module``. ``code`` is its own, ``codes`` has those of the functions that it reaches, too.

    Sizes are in bytes: of shared memory, and of the local memory of a thread, which beyond that takes more as it goes if it is
    ``stacked``.
    """

    module: Module
    code: Code
    codes: Mapping[Function, Code]
    static_shared: int
    local_bytes: int
    stacked: bool
    layout: KernelLayout

    @property
    def address(self) -> int:
        """There is no machine code; a launch only wants something other than 0."""
        return 1


def load_methods() -> None:
    """Import what registers lowerings and methods."""
    for name in LOWERINGS:
        import_module(f"ptxemu.lower.values.{name}")
    for name in METHOD_MODULES:
        import_module(f"ptxemu.interpreter.{name}")


def load_dialect(name: str) -> None:
    """Import what registers methods for the rows of a dialect's own."""
    if name != PTX.name:
        import_module(f"ptxemu.interpreter.dialects.{name}")


def image_of(module: Module, entry: str) -> Image:
    """Translate a kernel. Raises UnsupportedError for what it cannot run, InputError if there is no such kernel."""
    load_dialect(module.dialect)
    kernel = find_entry(module, entry)
    require_linked(module)
    functions = list(reached(module, kernel))
    codes = {function: Code(function, number) for number, function in enumerate(functions)}
    for function in functions:
        require_supported(module.source, function.body or [])
        require_local(module.source, function, codes[function].frame_bytes)
    layout = _layout(module, kernel, functions)
    ranked = are_ranked(op for function in functions for op in function.ops)
    for code in codes.values():
        translate(module, Translator(code, layout, codes, module.numerics, ranked))
    calls = any(op.call is not None and op.call.real for function in functions for op in function.ops)
    stacked = calls or any("stack" in op.row.effects.implicit.writes for function in functions for op in function.ops)
    frames = sum(code.frame_bytes + code.align for code in codes.values()) if calls else codes[kernel].frame_bytes
    return Image(module, codes[kernel], codes, layout.static_shared, frames, stacked, layout)


def translate(module: Module, t: Translator) -> None:
    try:
        t.translate()
    except UnsupportedError as error:
        raise UnsupportedError(f"{module.source.where(t.pos)}: {error}") from None


def reached(module: Module, kernel: Function) -> Iterator[Function]:
    """The kernel and all functions that it may call."""
    seen, work = {kernel}, [kernel]
    while work:
        function = work.pop()
        yield function
        for op in function.ops:
            if op.call is None or not op.call.real:
                continue
            callees = [op.call.callee] if isinstance(op.call.callee, Function) else targets(op, module.functions.values())
            work += [callee for callee in callees if callee not in seen]
            seen.update(callees)


def _layout(module: Module, kernel: Function, functions: list[Function]) -> KernelLayout:
    shared = [variable for variable in module.variables.values() if variable.space == "shared"]
    shared += [variable for function in functions for variable in function.variables if variable.space == "shared"]
    params = {param.variable: param.offset for param in kernel.params}
    return KernelLayout(ModuleLayout(module), list(dict.fromkeys(shared)), params, bool(CLUSTERS & set(kernel.limits)))


def verify() -> None:
    """Assert that every supported row of the table is elementwise or has a method."""
    for row in (row for forms in rows().values() for row in forms if row.supported):
        assert row.lower in METHODS or row.lower in ELEMENTWISE, f"no method {row.lower!r} of the interpreter for row: {row.text}"


load_methods()
verify()
