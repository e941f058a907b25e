"""Facts of a module as entries hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ptxemu._runtime import lib
from ptxemu.device.entry import Entry, Writer
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
from ptxemu.ir.types import signed
from ptxemu.text.symbols import plain_name

BLOCKS = {GLOBAL: lib.PE_BLOCK_GLOBAL, CONST: lib.PE_BLOCK_CONST, HANDLE: lib.PE_BLOCK_HANDLE}
SPACES = {number: space for space, number in BLOCKS.items()}


def body_of(info: ModuleInfo) -> bytes:
    """The sections of an entry."""
    writer = Writer()
    for kernel in info.kernels.values():
        _add_kernel(writer, kernel)
    for variable in info.variables.values():
        _add_variable(writer, variable)
    for handle in info.handles.values():
        _add_handle(writer, handle)
    for item in info.relocations:
        record = {"block": BLOCKS[item.space], "base": BLOCKS[item.base], "offset": item.offset,
                  "addend": signed(item.addend, 64), "size": item.size, "shift": item.shift, "index": item.index}  # fmt: skip
        writer.add(lib.PE_SECTION_RELOCATIONS, record)
    for part in info.contents:
        start = writer.data(lib.PE_SECTION_BYTES, part.data)
        record = {"block": BLOCKS[part.space], "offset": part.offset, "start": start, "size": len(part.data)}
        writer.add(lib.PE_SECTION_CONTENTS, record)
    for text in info.texts:
        line = writer.data(lib.PE_SECTION_LINES, text.lines) // 4
        writer.add(lib.PE_SECTION_FILES, {"start": text.start, "line": line, "lines": len(text.lines) // 4})
    blocks = [info.blocks[space] for space in (GLOBAL, CONST)]
    sizes, aligns = [block.size for block in blocks], [block.align for block in blocks]
    writer.add(lib.PE_SECTION_MODULE, {"size": sizes, "align": aligns, "handles": info.handle_count})
    return writer.body()


def _add_kernel(writer: Writer, kernel: KernelInfo) -> None:
    record = {
        "name": writer.text(kernel.name),
        "plain_name": writer.text(plain_name(kernel.name)),
        "parameter": writer.count(lib.PE_SECTION_PARAMETERS),
        "parameters": len(kernel.parameters),
        "limit": writer.count(lib.PE_SECTION_LIMITS),
        "limits": len(kernel.limits),
        "pair": writer.count(lib.PE_SECTION_PAIRS),
        "pairs": len(kernel.unsynced),
        "param_bytes": kernel.param_bytes,
        "function": kernel.number,
    }
    writer.add(lib.PE_SECTION_KERNELS, record)
    for item in kernel.parameters:
        _add_parameter(writer, item)
    for name, values in kernel.limits.items():
        writer.add(lib.PE_SECTION_LIMITS, {"name": writer.text(name), "count": len(values), "value": list(values)})
    for written, read in kernel.unsynced:
        writer.add(lib.PE_SECTION_PAIRS, {"written": writer.text(written), "read": writer.text(read)})


def _add_parameter(writer: Writer, item: Parameter) -> None:
    space, align = item.pointer or (None, 0)
    size, count = item.row or (0, 0)
    record = {
        "name": writer.text(item.name),
        "type": writer.text(item.type),
        "size": item.size,
        "align": item.align,
        "offset": item.offset,
        "is_array": item.elements is not None,
        "elements": item.elements or 0,
        "pointer_space": writer.text(space),
        "pointer_align": align,
        "row_size": size,
        "row_count": count,
        "use": writer.count(lib.PE_SECTION_USES),
        "uses": len(item.uses),
    }
    writer.add(lib.PE_SECTION_PARAMETERS, record)
    for use in item.uses:
        texts = {name: writer.text(getattr(use, name)) for name in ("kind", "element", "geometry")}
        flags = {"reads": use.reads, "writes": use.writes, "numeric": use.numeric}
        writer.add(lib.PE_SECTION_USES, {"offset": use.offset, **texts, **flags})


def _add_variable(writer: Writer, variable: VariableInfo) -> None:
    record = {
        "name": writer.text(variable.name),
        "type": writer.text(variable.type),
        "block": BLOCKS[variable.space],
        "vector": variable.vector,
        "extent": writer.count(lib.PE_SECTION_EXTENTS),
        "extents": len(variable.dims),
        "offset": variable.offset,
        "size": variable.size,
    }
    writer.add(lib.PE_SECTION_VARIABLES, record)
    for extent in variable.dims:
        writer.add(lib.PE_SECTION_EXTENTS, extent)


def _add_handle(writer: Writer, handle: HandleInfo) -> None:
    fields = [(element, name, value) for element, values in enumerate(handle.fields) for name, value in values.items()]
    record = {
        "name": writer.text(handle.name),
        "type": writer.text(handle.type),
        "first": handle.first,
        "count": handle.count,
        "field": writer.count(lib.PE_SECTION_FIELDS),
        "fields": len(fields),
        "initialised": len(handle.fields),
    }
    writer.add(lib.PE_SECTION_HANDLES, record)
    for element, name, value in fields:
        writer.add(lib.PE_SECTION_FIELDS, {"name": writer.text(name), "element": element, "value": signed(value, 64)})


def info_of(entry: Entry) -> ModuleInfo:
    """The inverse of :func:`body_of`."""
    (module,) = entry.records(lib.PE_SECTION_MODULE)
    data, lines = entry.data(lib.PE_SECTION_BYTES), entry.data(lib.PE_SECTION_LINES)
    return ModuleInfo(
        kernels={item.name: item for item in _kernels(entry)},
        variables={item.name: item for item in _variables(entry)},
        handles={item.name: item for item in _handles(entry)},
        relocations=tuple(
            Relocation(SPACES[item.block], item.offset, item.size, item.shift, SPACES[item.base], item.addend, item.index)
            for item in entry.records(lib.PE_SECTION_RELOCATIONS)
        ),
        blocks={space: Block(module.size[BLOCKS[space]], module.align[BLOCKS[space]]) for space in (GLOBAL, CONST)},
        contents=tuple(
            Contents(SPACES[item.block], item.offset, data[item.start : item.start + item.size])
            for item in entry.records(lib.PE_SECTION_CONTENTS)
        ),
        texts=tuple(
            TextLines(item.start, lines[4 * item.line : 4 * (item.line + item.lines)])
            for item in entry.records(lib.PE_SECTION_FILES)
        ),
    )


def _kernels(entry: Entry) -> Iterator[KernelInfo]:
    uses = [_use(entry, item) for item in entry.records(lib.PE_SECTION_USES)]
    parameters = [_parameter(entry, item, uses) for item in entry.records(lib.PE_SECTION_PARAMETERS)]
    limits = [(entry.text(item.name), tuple(item.value)[: item.count]) for item in entry.records(lib.PE_SECTION_LIMITS)]
    pairs = [(entry.text(item.written), entry.text(item.read)) for item in entry.records(lib.PE_SECTION_PAIRS)]
    for item in entry.records(lib.PE_SECTION_KERNELS):
        yield KernelInfo(
            entry.text(item.name),
            tuple(parameters[item.parameter : item.parameter + item.parameters]),
            item.param_bytes,
            dict(limits[item.limit : item.limit + item.limits]),
            tuple(pairs[item.pair : item.pair + item.pairs]),
            item.function,
        )


def _use(entry: Entry, item: Any) -> Use:
    kind, element, geometry = map(entry.text, (item.kind, item.element, item.geometry))
    return Use(item.offset, kind, element, geometry, bool(item.reads), bool(item.writes), bool(item.numeric))


def _parameter(entry: Entry, item: Any, uses: list[Use]) -> Parameter:
    return Parameter(
        entry.text(item.name),
        entry.text(item.type),
        item.size,
        item.align,
        item.offset,
        item.elements if item.is_array else None,
        None if item.pointer_space == lib.PE_NO_TEXT else (entry.text(item.pointer_space), item.pointer_align),
        (item.row_size, item.row_count) if item.row_size else None,
        tuple(uses[item.use : item.use + item.uses]),
    )


def _variables(entry: Entry) -> Iterator[VariableInfo]:
    extents = list(entry.records(lib.PE_SECTION_EXTENTS))
    for item in entry.records(lib.PE_SECTION_VARIABLES):
        dims = tuple(extents[item.extent : item.extent + item.extents])
        name, type = entry.text(item.name), entry.text(item.type)
        yield VariableInfo(name, SPACES[item.block], type, item.vector, dims, item.size, item.offset)


def _handles(entry: Entry) -> Iterator[HandleInfo]:
    all_fields = list(entry.records(lib.PE_SECTION_FIELDS))
    for item in entry.records(lib.PE_SECTION_HANDLES):
        fields: list[dict[str, int]] = [{} for _ in range(item.initialised)]
        for field in all_fields[item.field : item.field + item.fields]:
            fields[field.element][entry.text(field.name)] = field.value
        yield HandleInfo(entry.text(item.name), entry.text(item.type), item.first, item.count, tuple(fields))
