"""Run the runtime's tests with the C code built under sanitizers: ``python -m tests.support.sanitize [address|thread]``.

A copy of the project is built in a temporary folder; the interpreter itself is not instrumented, so the sanitizer's
library is preloaded.  Tests that start processes of their own or trap on purpose in ways the tools report are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.places import ROOT

FLAGS = {
    "address": "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer",
    "thread": "-fsanitize=thread",
}
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:use_sigaltstack=0",
    "TSAN_OPTIONS": "handle_segv=0:handle_sigbus=0:handle_sigfpe=0:use_sigaltstack=0:halt_on_error=1:report_bugs=1",
}
SUITES = (
    "test_runtime", "test_linked_code", "test_entries", "test_start", "test_surface", "test_texture", "test_typed_atomic",
    "test_atomics", "test_matrix", "test_mbarrier",
    "test_modules_async", "test_calls_waiting", "test_progress", "test_litmus", "test_heap", "test_cross", "test_sass_memory",
    "test_sass_rules", "test_sass_surfaces", "test_visa_atomic", "test_ctm_memory", "test_hostile_programs",
)  # fmt: skip
LEFT_OUT = (
    "given_back or nothing_behind or one_runtime or users_directory or fork or interrupt or handlers or portable"
    " or floating_point_state or stack_overflow or lazy"
)


def build(folder: Path, kind: str) -> None:
    """Build the extension in a copy of the project."""
    for name in ("csrc", "tools", "ptxemu", "tests", "samples", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        ignore = shutil.ignore_patterns("*.so", "__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignore)
        else:
            shutil.copy(source, folder / name)
    flags = {"CFLAGS": f"{FLAGS[kind]} -g", "LDFLAGS": FLAGS[kind]}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env={**os.environ, **flags}, check=True)


def environment(folder: Path, kind: str) -> dict[str, str]:
    """The variables with which Python runs what ``build`` has built."""
    library = subprocess.run(["cc", f"-print-file-name={LIBRARIES[kind]}"], capture_output=True, text=True, check=True)
    return {**os.environ, **OPTIONS, "LD_PRELOAD": library.stdout.strip(), "PYTHONPATH": str(folder)}


def test(folder: Path, kind: str) -> int:
    """The exit status of pytest."""
    env = environment(folder, kind)
    files = [str(path) for path in sorted((folder / "tests").rglob("test_*.py")) if path.name.startswith(SUITES)]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
    return subprocess.run([*command, "-k", f"not ({LEFT_OUT})", *files], cwd=folder, env=env).returncode


def main() -> int:
    kinds = sys.argv[1:] or list(FLAGS)
    for kind in kinds:
        with tempfile.TemporaryDirectory() as name:
            build(Path(name), kind)
            print(f"{kind}:", flush=True)
            if status := test(Path(name), kind):
                return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
