"""``ptxemu doctor``: what ptxemu finds on this machine, and whether it works here."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import click

import ptxemu
from ptxemu.cache import Cache
from ptxemu.check.header import LAST_MINOR, TARGETS
from ptxemu.device.device import machine_memory
from ptxemu.process.private import objection
from ptxemu.text.errors import Error, Fault
from ptxemu.text.json_text import json_text

LIBRARIES = ("llvmlite", "numpy", "ml_dtypes", "cffi", "msgspec", "pillow")
TOOLS = ("nvcc", "ptxas")
RELEASE = re.compile(r"\bV?(\d+\.\d+[\d.]*)")
SECONDS = 20  # that a tool may take to tell its version
PROBE = """
.version 7.8
.target sm_70
.address_size 64
.visible .entry probe(.param .u64 out)
{
  .reg .b32 %r<2>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
THREADS = 64
WIDTH = 12  # of the names of facts


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> int:
    """Show what ptxemu finds on this machine and what it supports. The exit code is 1 if something is wrong."""
    facts = examined()
    if as_json:
        click.echo(json_text(facts))
    else:
        _show(facts)
    return 0 if facts["ok"] else Fault.exit_code


def examined() -> dict[str, Any]:
    """All that there is to show, as JSON data; ``problems`` says what is wrong, in words."""
    problems: list[str] = []
    facts = {
        "ptxemu": ptxemu.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpu": _cpu(problems),
        "memory": machine_memory(),
        "cache": _cache(problems),
        "libraries": {name: _version(name, problems) for name in LIBRARIES},
        "tools": {name: _tool(name) for name in TOOLS},
        "ptx": {"versions": [_dotted(min(LAST_MINOR), 0), _dotted(*max(LAST_MINOR.items()))], "targets": list(TARGETS)},
        "engines": {name: _probe(name, problems) for name in ("jit", "interpreter")},
    }
    return {"ok": not problems, "problems": problems, **facts}


def _cpu(problems: list[str]) -> dict[str, Any]:
    """The processor as the system and as LLVM call it, and the features for which code is made."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith(("model name", "Model")))
    facts: dict[str, Any] = {"name": next(named, platform.machine()), "cores": len(os.sched_getaffinity(0))}
    try:
        from llvmlite import binding

        features = sorted(name for name, present in binding.get_host_cpu_features().items() if present)
        facts |= {"llvm_name": binding.get_host_cpu_name(), "features": features}
    except Exception as error:  # a library that does not fit raises anything
        problems.append(f"LLVM cannot be used: {error}")
    return facts


def _cache(problems: list[str]) -> dict[str, Any]:
    """Where compiled kernels are kept, and how much of the room is used."""
    chosen = Cache.place()
    if chosen is None:
        return {"directory": None, "used": False}
    cache = Cache.from_environment()
    if cache.directory is None:
        problems.append(f"compiled kernels are not kept: {objection(chosen)}")
        return {"directory": str(chosen), "used": False}
    entries, size = cache.contents()
    return {"directory": str(cache.directory), "used": True, "entries": entries, "bytes": size, "limit": cache.limit}


def _version(name: str, problems: list[str]) -> str | None:
    """The version of a library, of llvmlite with that of LLVM."""
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        if name != "pillow":  # which is for pictures only
            problems.append(f"{name} is not installed")
        return None
    if name != "llvmlite":
        return found
    from llvmlite import binding

    return f"{found} (LLVM {'.'.join(map(str, binding.llvm_version_info))})"


def _tool(name: str) -> dict[str, str] | None:
    """A program of the CUDA toolkit, if it is on PATH."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False)
        found = RELEASE.findall(done.stdout)
    except (OSError, subprocess.SubprocessError):
        found = []
    return {"path": path, "version": found[-1] if found else "unknown"}


def _dotted(major: int, minor: int) -> str:
    return f"{major}.{minor}"


def _probe(engine: str, problems: list[str]) -> bool:
    """Whether a small kernel computes what it should."""
    import numpy as np

    found = np.zeros(THREADS, np.uint32)
    try:
        with ptxemu.Device(memory="16 MiB", workers=1, engine=engine) as device:
            ptxemu.loads(PROBE, filename="probe.ptx", device=device)["probe"][1, THREADS](found)
    except Error as error:
        problems.append(f"a kernel does not run (engine {engine}): {error}")
        return False
    if not np.array_equal(found, np.arange(THREADS)):
        problems.append(f"a kernel computes wrong results (engine {engine})")
        return False
    return True


def _show(facts: dict[str, Any]) -> None:
    for name, text in _rows(facts).items():
        room = max(40, shutil.get_terminal_size().columns - WIDTH)
        lines = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or ["none"]
        click.echo("\n".join(f"{'' if number else name:<{WIDTH}}{line}" for number, line in enumerate(lines)))
    for problem in facts["problems"]:
        click.echo(f"problem: {problem}")
    if facts["ok"]:
        click.echo("no problems found")


def _rows(facts: dict[str, Any]) -> dict[str, str]:
    """The facts in words."""
    cpu, versions = facts["cpu"], " to ".join(facts["ptx"]["versions"])
    tools = (f"{name} {tool['version']} ({tool['path']})" if tool else f"no {name}" for name, tool in facts["tools"].items())
    return {
        "ptxemu": f"{facts['ptxemu']}, Python {facts['python']}, {facts['system']}",
        "CPU": f"{cpu['name']}, {cpu['cores']} core(s), for LLVM {cpu.get('llvm_name', 'unknown')}",
        "features": " ".join(cpu.get("features", [])),
        "memory": f"{facts['memory'] / (1 << 30):.1f} GiB",
        "cache": _cache_in_words(facts["cache"]),
        "libraries": ", ".join(f"{name} {version or 'missing'}" for name, version in facts["libraries"].items()),
        "CUDA tools": ", ".join(tools),
        "PTX": f"versions {versions}, targets {', '.join(f'sm_{target}' for target in facts['ptx']['targets'])}",
        "engines": ", ".join(f"{name} {'works' if works else 'fails'}" for name, works in facts["engines"].items()),
    }


def _cache_in_words(cache: dict[str, Any]) -> str:
    if not cache["used"]:
        return f"{cache['directory']}, not used" if cache["directory"] else "off"
    used, limit = cache["bytes"] / (1 << 20), cache["limit"] >> 20
    return f"{cache['directory']}: {cache['entries']} entries, {used:.1f} of {limit} MiB, private to the user"
