"""The names of CPUs that code can be generated for."""

from __future__ import annotations

import subprocess
import sys

from ptxemu.text.errors import InputError, shown

NATIVE = "native"
# LLVM cannot be asked for a name: it warns of those it does not know, and ends the process for some. Another process tells.
PROBE = """
import sys, llvmlite.binding as llvm
llvm.initialize_native_target(), llvm.initialize_native_asmprinter()
machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(cpu=sys.argv[1])
machine.emit_object(llvm.parse_assembly("define void @f() { ret void }"))
"""
SECONDS = 60


def checked_cpu(name: str | None) -> str | None:
    """The name of a CPU that LLVM knows, or None for this machine's, which is also ``native``."""
    if name is None or name == NATIVE:
        return None
    command = [sys.executable, "-c", PROBE, name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode or done.stderr:
        raise InputError(f"--cpu {shown(name)}: no CPU of this architecture has that name; try {NATIVE} or x86-64-v3")
    return name
