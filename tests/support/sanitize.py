"""Run the runtime's tests with the C code built under sanitizers: ASan with UBSan (``address``), or TSan (``thread``).

    python -m tests.support.sanitize [address|thread] [--only PART...]

Each file of tests has a process of its own, so that a report, which ends the process, does not hide those of other files;
``--only`` picks the files whose paths have one of the parts.  Exits with 1 if there was any report or failure.

A copy of the project is built in a temporary folder; the interpreter itself is not instrumented, so the sanitizer's
library is preloaded.  Tests that start processes of their own or trap on purpose in ways the tools report are left out.
"""

from __future__ import annotations

import argparse
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
    "test_runtime", "test_guest",
    "test_linked_code", "test_entries", "test_start", "test_surface", "test_texture", "test_typed_atomic",
    "test_atomic", "test_at_once", "test_gathers", "test_grouped", "test_halves",
    "test_masked_stores", "test_partial_rows", "test_pairs", "test_runs", "test_shared_", "test_arms", "test_lane_walks",
    "test_windows", "test_borders", "test_spread", "test_twins", "test_lane_reach", "test_matrix", "test_tensor_cores",
    "test_hopper",
    "test_wgmma", "test_tcgen05", "test_scaled", "test_mbarrier",
    "test_modules_async", "test_calls_waiting", "test_progress", "test_litmus", "test_heap", "test_cross", "test_sass_memory",
    "test_sass_rules", "test_sass_surfaces", "test_visa_atomic", "test_visa_surfaces", "test_ctm_memory", "test_hostile",
    "test_api_hostile", "test_looped", "test_rows", "test_tiers", "test_meetings", "test_geometry", "test_spec_vectors",
    "test_observer", "test_cudart", "test_driver", "test_guard", "test_embed", "test_spread", "test_stray", "test_race",
    "test_sums", "test_claims",
    "test_sync", "test_leak", "test_init", "test_together", "test_texel", "test_copies", "test_waits", "test_scopes",
    "test_proxies", "test_places", "test_quiet", "test_virtual_memory", "test_pools",
    "test_children", "test_standing", "test_maps", "test_measured", "test_tensor_maps", "test_clusters", "test_cuda_clusters",
    "test_abreast", "test_borders", "test_pieces", "test_large_grids", "test_rests",
    "test_cancel", "test_node_attributes", "test_graph_drawings", "test_nested_launches",
)  # fmt: skip
COMPILER = """#!/bin/sh
for given do
  shift
  [ "$given" = "{folder}" ] && given=
  set -- "$@" "$given"
done
exec "{python}" "$@"
"""
"""The Python of processes that compile for the CUDA libraries. They have less memory than the sanitizer wants, so they get the
ptxemu that is installed, in place of that in the folder."""
NOTHING_TO_RUN = 5  # the exit status of pytest
LEFT_OUT = (
    "given_back or nothing_behind or one_runtime or users_directory or fork or interrupt or handlers or portable"
    " or floating_point_state or stack_overflow or lazy"
    " or loads_leave_nothing or stacks_of_waiting_blocks_count or stacks_count"  # sanitizers keep memory that is free
    " or background_process_makes or cases_are_flawed"  # in processes that have less memory than they want
)


TOO_LARGE = {"thread": {"test_hostile_programs.py"}}
"""Files whose programs run with less memory than the sanitizer wants."""


def build(folder: Path, kind: str) -> None:
    """Build the extension in a copy of the project."""
    files = ("setup.py", "pyproject.toml", "README.md", "LICENSE")
    for name in ("csrc", "cuda", "tools", "ptxemu", "tests", "samples", "docs", "bench", *files):
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
    compiler = folder / "compiler"
    compiler.write_text(COMPILER.format(folder=folder, python=sys.executable))
    compiler.chmod(0o755)
    variables = {"LD_PRELOAD": library.stdout.strip(), "PTXEMU_PYTHON": str(compiler), "PYTHONPATH": str(folder)}
    return {**os.environ, **OPTIONS, **variables}


def chosen(folder: Path, parts: list[str]) -> list[Path]:
    files = sorted(path for path in (folder / "tests").rglob("test_*.py") if path.name.startswith(SUITES))
    return [path for path in files if not parts or any(part in path.relative_to(folder).as_posix() for part in parts)]


def test(folder: Path, kind: str, parts: list[str]) -> list[str]:
    """The names of the files in which something was reported or failed."""
    env, bad = environment(folder, kind), []
    for path in chosen(folder, parts):
        if path.name in TOO_LARGE.get(kind, ()):
            continue
        print(f"{kind}: {path.name}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:faulthandler"]
        done = subprocess.run([*command, "-k", f"not ({LEFT_OUT})", str(path)], cwd=folder, env=env)
        if done.returncode not in (0, NOTHING_TO_RUN):
            bad.append(f"{kind}: {path.name}")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", choices=FLAGS, help="both if none is named")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART", help="of the paths of test files")
    options = parser.parse_args()
    for part in options.only:
        if not chosen(ROOT, [part]):
            parser.error(f"--only: no file of tests that run under sanitizers has {part!r} in its path")
    bad = []
    for kind in [options.kind] if options.kind else FLAGS:
        with tempfile.TemporaryDirectory() as name:
            build(Path(name), kind)
            bad += test(Path(name), kind, options.only)
    print("\n".join(["reports or failures:", *bad] if bad else ["no reports"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
