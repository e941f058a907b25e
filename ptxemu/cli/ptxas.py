"""``ptxemu-ptxas``: stands in for ptxas where programs compile PTX before they load it, as Triton does.

It checks the PTX, and its output is the PTX itself, which ``libcuda.so.1`` takes as an image.  Options that only say how ptxas
is to optimize change nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ptxemu.driver.front import lint, read_ptx
from ptxemu.text.errors import InputError

VERSION = "ptxas: stands in for NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 13.0, V13.0.0 (ptxemu)"
DEFAULT_OUTPUT = "elf.o"
WRONG = 255
OUTPUT = ("-o", "--output-file")
TARGET = ("-arch", "--gpu-name")
VALUED = {
    "-O", "--opt-level", "-m", "--machine", "-maxrregcount", "--maxrregcount", "-fmad", "--fmad", "-regAllocOptLevel",
    "--regAllocOptLevel", "--allow-expensive-optimizations", "--def-load-cache", "--def-store-cache", *OUTPUT, *TARGET,
}  # fmt: skip
FLAGS = {
    "-v", "--verbose", "-g", "--device-debug", "-lineinfo", "--generate-line-info", "-w", "--disable-warnings",
    "-suppress-debug-info", "--suppress-debug-info", "-c", "--compile-only", "--warn-on-spills", "--warn-on-local-memory-usage",
}  # fmt: skip


class _Wrong(Exception):
    """What ends the program, in words."""


def main() -> None:
    """The entry point."""
    try:
        sys.exit(assemble(sys.argv[1:]))
    except (_Wrong, InputError) as error:
        print(f"ptxas fatal   : {error}", file=sys.stderr)
        sys.exit(WRONG)


def assemble(arguments: list[str]) -> int:
    """Check the file that the arguments name, and copy it where they say."""
    if any(one in ("-V", "--version") for one in arguments):
        print(VERSION)
        return 0
    options, inputs = _parse(arguments)
    if len(inputs) != 1:
        raise _Wrong(f"one input file is needed, not {len(inputs)}")
    text = read_ptx(Path(inputs[0]))
    _check_target(text, options.get("target"))
    found = lint(text, filename=inputs[0], strict=True, dialect="ptx")
    for record in found:
        print(record.render(), file=sys.stderr)
    if any(record.severity == "error" for record in found):
        raise _Wrong("Ptx assembly aborted due to errors")
    try:
        Path(options.get("output", DEFAULT_OUTPUT)).write_text(text, encoding="utf-8")
    except OSError as error:
        raise _Wrong(f"cannot write {options.get('output', DEFAULT_OUTPUT)}: {error.strerror}") from None
    return 0


def _parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The output and the target, and the names of files."""
    options: dict[str, str] = {}
    inputs = []
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if re.fullmatch(r"-O\d", name):
            continue
        if name in VALUED:
            if not equals and not rest:
                raise _Wrong(f"option {name} needs a value")
            value = value if equals else rest.pop(0)
            options |= {"output": value} if name in OUTPUT else {"target": value} if name in TARGET else {}
        elif name.startswith("-") and name not in FLAGS:
            raise _Wrong(f"Unknown option '{name}'")
        elif not name.startswith("-"):
            inputs.append(name + equals + value)
    return options, inputs


def _check_target(text: str, target: str | None) -> None:
    """As ptxas does it: PTX for a later target than the device's is refused."""
    wanted, given = re.search(r"^\s*\.target\s+sm_(\d+)", text, re.MULTILINE), re.search(r"(\d+)", target or "")
    if target is not None and given is None:
        raise _Wrong(f"Value '{target}' is not defined for option 'gpu-name'")
    if wanted and given and int(wanted[1]) > int(given[1]):
        raise _Wrong(f"SM version specified by .target is higher than default SM version assumed: sm_{wanted[1]}, {target}")
