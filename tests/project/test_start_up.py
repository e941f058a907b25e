"""What programs wait for before their first kernel runs: modules that they do not need are not imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.places import BENCH, SAMPLES

FIRST_LAUNCH = """if 1:
    import sys, ptxemu
    module = ptxemu.load(sys.argv[1])
    for kernel in module.values():
        kernel[1, 32].compile()
    print(*sorted(set(sys.argv[2:]) & set(sys.modules)))
"""
SAXPY = SAMPLES / "saxpy" / "kernel.ptx"


def printed(code: str, *arguments: object, cache: Path | None = None) -> str:
    """What a program prints in a process of its own."""
    environment = os.environ | {"PTXEMU_CACHE": "off" if cache is None else str(cache)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_start_up_imports_no_compiler():
    """A warm start must not pay for the parser, the checker and the passes."""
    slow = {"ply", "rich", "ml_dtypes", "ptxemu.driver.compile"}
    assert printed(f"import sys, ptxemu.cli.verbs.run; print(sorted({slow!r} & set(sys.modules)))") == "[]\n"


@pytest.mark.parametrize("verb", ["lint", "info", "compile"])
def test_verbs_that_run_nothing_import_no_numpy(verb):
    assert (
        printed(f"import sys, ptxemu.cli, ptxemu.cli.verbs.{verb}; print({{'numpy', 'ptxemu.api'}} & set(sys.modules))")
        == "set()\n"
    )


def test_start_up_imports_no_interpreter():
    assert printed("import sys, ptxemu.cli.verbs.run; print('ptxemu.interpreter' in sys.modules)") == "False\n"


def test_the_interpreter_loads_no_pass():
    slow = ("ptxemu.passes", "ptxemu.analysis", "ptxemu.lower.core.context", "ptxemu.driver.compile")
    code = f"import sys, ptxemu.interpreter.engine; print([name for name in sys.modules if name.startswith({slow!r})])"
    assert printed(code) == "[]\n"


def test_compiling_imports_no_numpy():
    """Programs that have arrays have imported it; others need not wait."""
    assert printed(FIRST_LAUNCH, SAXPY, "numpy", "ptxemu.driver.compile") == "ptxemu.driver.compile\n"


def test_what_is_in_the_cache_needs_no_llvm_and_no_compiler(tmp_path):
    modules = ("llvmlite.binding", "ply", "ptxemu.isa", "ptxemu.check", "ptxemu.lower", "ptxemu.driver.compile")
    assert printed(FIRST_LAUNCH, SAXPY, *modules, cache=tmp_path).split() == sorted(modules)
    assert printed(FIRST_LAUNCH, SAXPY, *modules, cache=tmp_path) == "\n"


def test_imports_are_not_searched_by_the_collector():
    """Modules are imported, and a kernel is compiled, with at most one search after each, and none of all that there is."""
    code = """if 1:
    import gc, sys, ptxemu
    searched = []
    gc.callbacks.append(lambda phase, found: phase == "start" and searched.append(found["generation"]))
    module = ptxemu.load(sys.argv[1])
    module["bitonic"][1, 256].compile()
    print(len(searched) <= 4, set(searched) <= {0})
    """
    assert printed(code, BENCH / "kernels" / "bitonic.ptx") == "True True\n"


def test_the_compile_server_imports_no_numpy():
    """Nor do its workers: programs wait for them, and NumPy is a quarter of what they would import."""
    code = """if 1:
    import sys
    from ptxemu.serve.server import Server
    from ptxemu.serve.warm import KERNEL, warm
    warm()
    before = set(sys.modules)
    from ptxemu.cache import Cache
    from ptxemu.driver.program import Program, Settings
    from ptxemu.text.source import SourceFile
    program = Program(SourceFile("<module>", KERNEL), Settings(), Cache(None))
    assert program.code("k", (32, 1, 1)).final and Server
    print("numpy" in sys.modules, sorted(name for name in set(sys.modules) - before if name.startswith("ptxemu")))
    """
    assert printed(code) == "False []\n"
