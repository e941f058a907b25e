"""From typed IR to the plain facts that a launch needs (:mod:`ptxemu.device.module_info`)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from ptxemu.analysis.parameters import uses_of
from ptxemu.device.module_info import (
    CONST,
    GLOBAL,
    HANDLE,
    Block,
    Contents,
    HandleInfo,
    KernelInfo,
    ModuleInfo,
    Parameter,
    Relocation,
    TextLines,
    Use,
    VariableInfo,
)
from ptxemu.dialects import PTX
from ptxemu.ir.ops import Function, Module, Op, Param, Reloc, Variable
from ptxemu.ir.types import OPAQUE
from ptxemu.lower.core.layout import ModuleLayout
from ptxemu.text.source import SourceFile, parts_of


def describe(module: Module) -> ModuleInfo:
    """The facts of a checked module."""
    layout = ModuleLayout(module)
    stored = [*layout.globals, *layout.consts]
    return ModuleInfo(
        kernels={function.name: _kernel(function, layout, module.dialect) for function in module.entries},
        variables={variable.name: _variable(variable, layout) for variable in stored},
        handles={variable.name: _handle(variable, layout) for variable in layout.handles},
        relocations=tuple(
            _relocation(variable, reloc, layout)
            for variable in stored
            for reloc in variable.relocs
            if isinstance(reloc.target, Variable)
        ),
        blocks={
            GLOBAL: Block(layout.global_size, layout.align(layout.globals)),
            CONST: Block(layout.const_size, layout.align(layout.consts)),
        },
        contents=tuple(item for variable in stored for item in _contents(variable, layout)),
        texts=tuple(_lines(parts_of(module.source))),
    )


def _lines(parts: Iterable[SourceFile]) -> Iterator[TextLines]:
    start = 0
    for part in parts:
        yield TextLines(start, struct.pack(f"<{len(part.starts)}I", *(start + line for line in part.starts)))
        start += len(part.text)


def _contents(variable: Variable, layout: ModuleLayout) -> Iterator[Contents]:
    """The initial bytes of a variable; addresses of functions are constants and among them."""
    space, start = _space(variable), layout.offsets[variable]
    for offset, data in variable.init:
        yield Contents(space, start + offset, data)
    for reloc in variable.relocs:
        if not isinstance(reloc.target, Variable):
            value = layout.function_address(reloc.target) >> reloc.shift
            yield Contents(space, start + reloc.offset, value.to_bytes(8, "little")[: reloc.size])


def _space(variable: Variable) -> str:
    return CONST if variable.space == "const" else GLOBAL


def _kernel(function: Function, layout: ModuleLayout, dialect: str) -> KernelInfo:
    uses: dict[Variable, list[Use]] = {param.variable: [] for param in function.params}
    if dialect == PTX.name:
        ops = [item for item in function.body or () if isinstance(item, Op)]
        for (variable, _), use in uses_of(ops, uses).items():
            uses[variable].append(use)
    parameters = tuple(_parameter(param, tuple(uses[param.variable])) for param in function.params)
    number = layout.functions[function.name]
    return KernelInfo(function.name, parameters, function.param_bytes, dict(function.limits), function.unsynced, number)


def _parameter(param: Param, uses: tuple[Use, ...]) -> Parameter:
    variable = param.variable
    array = bool(variable.dims) or variable.vector > 1
    elements = variable.size // variable.type.bytes if array else None
    return Parameter(variable.name, variable.type.name, variable.size, variable.align, param.offset, elements, param.ptr,
                     param.row, uses)  # fmt: skip


def _variable(variable: Variable, layout: ModuleLayout) -> VariableInfo:
    offset = layout.offsets[variable]
    dims = tuple(extent or 0 for extent in variable.dims)
    return VariableInfo(variable.name, _space(variable), variable.type.name, variable.vector, dims, variable.size, offset)


def _handle(variable: Variable, layout: ModuleLayout) -> HandleInfo:
    count = max(1, variable.size // 8)
    return HandleInfo(variable.name, variable.type.name, layout.handle_index[variable], count, tuple(map(dict, variable.fields)))


def _relocation(variable: Variable, reloc: Reloc, layout: ModuleLayout) -> Relocation:
    target = reloc.target
    assert isinstance(target, Variable)
    space = _space(variable)
    at = layout.offsets[variable] + reloc.offset
    if target.type.name in OPAQUE:
        return Relocation(space, at, reloc.size, reloc.shift, HANDLE, reloc.addend, layout.handle_index[target])
    return Relocation(space, at, reloc.size, reloc.shift, target.space, layout.offsets[target] + reloc.addend)
