"""From LLVM IR text to object code, and from object code to callable addresses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from threading import Lock

import llvmlite.binding as llvm

from ptxemu.target import Target

# Characters of IR. Above SMALL the standard pipeline costs more than it gains; above HUGE so does register allocation
# beyond the simplest kind, whose time grows faster than the kernel.
SMALL = 60_000
HUGE = 4_000_000

_lock = Lock()
_numbers = count()


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@lru_cache(maxsize=8)
def host() -> tuple[str, str, str]:
    """(triple, CPU name, feature string) of this machine."""
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


# Features of the x86-64 levels that choose how memory instructions are lowered.
LEVELS = {
    "x86-64": frozenset[str](),
    "x86-64-v2": frozenset[str](),
    "x86-64-v3": frozenset({"avx2"}),
    "x86-64-v4": frozenset({"avx2", "avx512f", "avx512bw", "avx512vl", "avx512dq"}),
}


@lru_cache(maxsize=8)
def target_machine(cpu: str | None, opt: int) -> llvm.TargetMachine:
    """A code generator for a CPU name, None meaning this machine."""
    _initialize()
    triple, name, features = host()
    if cpu is not None:
        name, features = cpu, ""
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=opt, reloc="pic", codemodel="small", jit=False
    )


def target_of(cpu: str | None) -> Target:
    """What the lowering may assume of a CPU."""
    if cpu is not None:
        return Target(LEVELS.get(cpu, frozenset()))
    features = host()[2].split(",")
    return Target(frozenset(feature[1:] for feature in features if feature.startswith("+")))


def optimize(text: str, cpu: str | None, opt: int) -> llvm.ModuleRef:
    """Parse and optimize IR text. The lock is LLVM's: contexts are not shared between threads."""
    machine = target_machine(cpu, opt)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=min(opt, 2))
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    if opt >= 2 and len(text) <= SMALL:
        builder.getModulePassManager().run(module, builder)
    else:
        _light_pipeline().run(module, builder)
    return module


def _light_pipeline() -> llvm.ModulePassManager:
    """Promotion of slots, then the cheap cleanups: near linear in the size of the kernel."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


def compile_object(text: str, cpu: str | None = None, opt: int = 2) -> bytes:
    """IR text to an ELF object."""
    with _lock:
        return bytes(_generator(text, cpu, opt).emit_object(optimize(text, cpu, opt)))


def compile_assembly(text: str, cpu: str | None = None, opt: int = 2) -> str:
    with _lock:
        return str(_generator(text, cpu, opt).emit_assembly(optimize(text, cpu, opt)))


def _generator(text: str, cpu: str | None, opt: int) -> llvm.TargetMachine:
    return target_machine(cpu, 0 if len(text) > HUGE else opt)


@dataclass(slots=True)
class LoadedCode:
    """Linked code. ``address`` is valid as long as this object lives."""

    address: int
    _tracker: object


@lru_cache(maxsize=1)
def _linker() -> llvm.OrcJIT:
    _initialize()
    return llvm.create_lljit_compiler(target_machine(None, 2), use_jit_link=True, suppress_errors=True)


def load(code: bytes, symbol: str) -> LoadedCode:
    """Link an object of this machine's kind; only the runtime's own functions are visible to it."""
    from ptxemu.run import SYMBOLS

    with _lock:
        library = llvm.JITLibraryBuilder()
        for name, address in SYMBOLS.items():
            library.import_symbol(name, address)
        tracker = library.add_object_img(code).export_symbol(symbol).link(_linker(), f"kernel{next(_numbers)}")
        return LoadedCode(tracker[symbol], tracker)
