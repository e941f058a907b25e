"""From LLVM IR text to object code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TypeVar

import llvmlite
import llvmlite.binding as llvm
from msgspec import Struct

from ptxemu.driver.llvm_unlocked import generate, lock, parse, run_passes
from ptxemu.lower.core.target import Target
from ptxemu.process.interruptible import interruptible
from ptxemu.text.errors import Error

Code = TypeVar("Code", bytes, str)


class Effort(Struct, frozen=True):
    """``level`` of the code generator, 0 to 3; ``standard``: LLVM's own pipeline, not only the cheap cleanups."""

    level: int
    standard: bool


LARGE = 256
"""Blocks of a function above which CodeGenPrepare, the last pass before the code generator, goes through it once and then only
through what it has changed. In smaller ones it starts again at the first block after some changes, such as that of a subtraction
and a comparison of the same values, so that the time grows with the square.
LLVM's own bound is 10,000; it is one for the process."""


LEFT_OUT = ("sccp", "ipsccp", "aggressive-instcombine")
"""Passes of LLVM's standard pipeline that do harm, in all of the process. The first two go through a loop in which each value is
made of the two before it in a time that doubles with every few instructions, and find nothing in kernels of compilers. The last
makes 128-bit products of the four products that the upper half of a 64-bit one is lowered to, for which vectors have no
instruction."""

LEAST_LLVM = 22
"""The first version that takes all operations as they are written here. What it cannot take, LLVM ends the process for."""


@lru_cache(maxsize=1)
def _initialize() -> None:
    """For this machine's architecture; all of LLVM's take milliseconds. Raises Error if LLVM is too old."""
    if llvm.llvm_version_info[0] < LEAST_LLVM:
        raise Error(
            f"llvmlite {llvmlite.__version__} has LLVM {llvm.llvm_version_info[0]}; ptxemu needs {LEAST_LLVM} or a later one"
        )
    llvm.set_option("", f"-cgpp-huge-func={LARGE}")
    llvm.set_option("", f"-opt-disable={','.join(LEFT_OUT)}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()  # of inline assembly


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


_idle_machines: defaultdict[tuple[str | None, int], list[llvm.TargetMachine]] = defaultdict(list)


@contextmanager
def machine_for(cpu: str | None, opt: int) -> Iterator[llvm.TargetMachine]:
    """A code generator that no other thread has meanwhile. It is kept, as it takes a millisecond to learn what a CPU can do."""
    idle = _idle_machines[cpu, opt]
    try:
        machine = idle.pop()
    except IndexError:
        machine = target_machine(cpu, opt)
    yield machine
    idle.append(machine)  # not after an error


def target_machine(cpu: str | None, opt: int) -> llvm.TargetMachine:
    """A code generator for a CPU name, None meaning this machine."""
    with lock:
        _initialize()
    triple, name, features = host()
    if cpu is not None:
        name, features = cpu, ""
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=name, features=features, opt=opt, reloc="pic", codemodel="small", jit=False
    )


def target_of(cpu: str | None) -> Target:
    """What the lowering may assume of a CPU."""
    triple, _, features = host()
    x86 = triple.startswith("x86_64")
    if cpu is not None:
        return Target(LEVELS.get(cpu, frozenset()), x86)
    return Target(frozenset(feature[1:] for feature in features.split(",") if feature.startswith("+")), x86)


def optimized(text: str, cpu: str | None, effort: Effort) -> str:
    """IR text to the IR that code is made of."""
    return interruptible(lambda: _translate(text, cpu, effort, lambda machine, module: str(module)))


def compile_object(text: str, cpu: str | None, effort: Effort) -> bytes:
    """IR text to an ELF object."""
    return interruptible(lambda: _translate(text, cpu, effort, partial(generate, assembly=False)))


def compile_assembly(text: str, cpu: str | None, effort: Effort) -> str:
    """IR text to assembly."""
    return interruptible(lambda: _translate(text, cpu, effort, partial(generate, assembly=True))).decode()


def _translate(text: str, cpu: str | None, effort: Effort, emit: Callable[[llvm.TargetMachine, llvm.ModuleRef], Code]) -> Code:
    """Parse, optimize and emit. All that LLVM has for it belongs to this call, so that other threads may do the same."""
    with machine_for(cpu, effort.level) as machine, llvm.create_context() as context, parse(text, context) as module:
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        _optimize(module, machine, effort)
        return emit(machine, module)


def _optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine, effort: Effort) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=min(effort.level, 2))
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    run_passes(builder.getModulePassManager() if effort.standard else _light_pipeline(), module, builder)


def _light_pipeline() -> llvm.ModulePassManager:
    """Promotion of slots, then the cheap cleanups: near linear in the size of the kernel."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes
