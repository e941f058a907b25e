"""What a kernel must be so that it can be run: whatever the engine, nothing is ever skipped."""

from __future__ import annotations

from ptxemu.device.launch_limits import MAX_LOCAL
from ptxemu.ir.ops import Function, LabelMark, Module, Op, Symbol, Variable, names_of
from ptxemu.ir.runtime_calls import SIGNATURES, is_runtime_call
from ptxemu.text.errors import InputError, UnsupportedError
from ptxemu.text.source import SourceFile


def find_entry(module: Module, name: str) -> Function:
    function = module.functions.get(name)
    if function is None or function.kind != "entry" or function.body is None:
        raise InputError(f"no kernel named '{name}' in {module.source.name}")
    return function


def require_linked(module: Module) -> None:
    """Refuse a kernel whose module could not be linked."""
    source = module.source
    for variable in module.variables.values():
        for reloc in variable.relocs:
            _require_defined(source, variable.pos, reloc.target)


def require_local(source: SourceFile, function: Function, size: int) -> None:
    """Refuse a function whose variables take more local memory than a thread has; ptxas leaves that to the launch."""
    if size > MAX_LOCAL:
        where = source.where(function.pos)
        raise InputError(f"{where}: '{function.name}' takes {size} bytes of local memory; a thread has {MAX_LOCAL}")


def require_supported(source: SourceFile, body: list[Op | LabelMark]) -> None:
    """Refuse the first instruction that cannot be run; nothing is ever skipped."""
    for item in body:
        if not isinstance(item, Op):
            continue
        for symbol in names_of(item):
            _require_defined(source, item.pos, symbol)
        what = None
        if not item.row.supported:
            what = f"instruction '{written(source, item)}'"
        elif item.call is not None and not item.call.real and not is_runtime_call(item.call):
            assert isinstance(item.call.callee, Function)
            name = item.call.callee.name
            what = f"call of external function '{name}'" + (" with these parameters" if name in SIGNATURES else "")
        if what is not None:
            raise UnsupportedError(f"{source.where(item.pos)}: {what} is not supported")


def _require_defined(source: SourceFile, pos: int, symbol: Symbol) -> None:
    """Refuse a variable that no file of the program defines, as nvlink does. Dynamic shared memory is the launch's."""
    if isinstance(symbol, Variable) and symbol.linkage == "extern" and symbol.space != "shared":
        where = source.where(pos)
        raise InputError(f"{where}: '{symbol.name}' is not defined: it is .extern, and the file that defines it is not loaded")


def written(source: SourceFile, op: Op) -> str:
    """The opcode with its modifiers as the source has it."""
    text = source.text[op.pos : op.end]
    words = text.split(None, 2)
    return (words[1] if words and words[0].startswith("@") and len(words) > 1 else words[0]).rstrip(";")
