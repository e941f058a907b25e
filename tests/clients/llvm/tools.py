"""LLVM's compiler and NVIDIA's assembler."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

RUN = re.compile(r"^\s*;\s*RUN:\s*(.*?)\s*$", re.MULTILINE)
OLDEST = 75
"""The architecture that ptxas still takes: texts for older ones are compiled for it."""
NEWEST_PTX = 95
LIMIT = 60.0
"""Seconds for a tool."""


class Tools:
    def __init__(self, suffix: str = "") -> None:
        """``suffix``: that of the names of LLVM's programs, such as -22."""
        found = {name: shutil.which(name + suffix) for name in ("llc", "llvm-extract", "opt")} | {"ptxas": shutil.which("ptxas")}
        missing = [name for name, path in found.items() if path is None]
        if missing:
            raise SystemExit(f"not found: {', '.join(missing)}")
        self._paths = {name: str(path) for name, path in found.items()}

    def run(self, name: str, *arguments: str, text: str = "") -> str | None:
        """What a program writes, or None if it refuses."""
        try:
            done = subprocess.run(
                [self._paths[name], *arguments], input=text.encode(), capture_output=True, timeout=LIMIT, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.decode(errors="replace") if done.returncode == 0 else None

    def accepts(self, ptx: str, folder: Path) -> bool:
        """Whether ptxas takes a module."""
        target = re.search(r"^\.target\s+(\w+)", ptx, re.MULTILINE)
        file = folder / "module.ptx"
        file.write_text(ptx)
        architecture = target.group(1) if target else f"sm_{OLDEST}"
        return self.run("ptxas", "-c", "-arch", architecture, "-o", "/dev/null", str(file)) is not None


def configurations(source: str) -> list[tuple[str, ...]]:
    """The options of llc in a test's RUN lines, as far as ptxas takes what they ask for."""
    joined = re.sub(r"\\\n\s*;\s*RUN:", " ", source)
    found: dict[tuple[str, ...], None] = {}
    for line in RUN.findall(joined):
        for command in re.split(r"[|;&]+", line.replace("%if", "|").replace("%{", " ")):
            words = command.replace("<", " < ").split()
            if "llc" in words[:2] and (options := _options(words[words.index("llc") + 1 :])) is not None:
                found[options] = None
    return list(found)


def _options(words: list[str]) -> tuple[str, ...] | None:
    """Without files, and for an architecture that is still known. None: for 32 bits, or for another compiler's check."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or word in ("<", "-", "2>&1") or word.startswith(("%", ">", "--filetype", "-filetype", "-verify", "-stop", "-o")):
            skip = word in ("-o", ">", "<") and not skip
            if word.startswith(("-stop", "-filetype", "--filetype")):
                return None
            continue
        kept.append(word)
    given = {name.lstrip("-"): value for name, _, value in (word.partition("=") for word in kept)}
    if any(given.get(name, "nvptx64").split("-")[0] != "nvptx64" for name in ("mtriple", "march")) or any(
        "%" in word for word in kept
    ):
        return None
    number = re.match(r"sm_(\d+)", given.get("mcpu", "sm_0"))
    version = re.search(r"ptx(\d+)", given.get("mattr", ""))
    if number is None or (version and int(version.group(1)) > NEWEST_PTX):
        return None
    if int(number.group(1)) >= OLDEST:
        return tuple(kept)
    rest = [word for word in kept if word.lstrip("-").partition("=")[0] not in ("mcpu", "mattr")]
    return (*rest, f"-mcpu=sm_{OLDEST}")


def parts(ptx: str) -> list[str]:
    """A module for each function: what stands before the first, and the function."""
    body = re.split(r"(?<=-- End function\n\})\s*\n", ptx)
    first = re.search(r"^\t// \.globl", body[0], re.MULTILINE)
    if len(body) < 2 or first is None:
        return [ptx]
    head = body[0][: first.start()]
    functions = [body[0][first.start() :], *body[1:]]
    return [f"{head}\n{function}\n" for function in functions if "-- End function" in function]
