"""How ``cuda/*.c`` becomes the CUDA libraries, which lie over ``libptxemu.so``: names and generated sources.

Every name that CUDA's own library exports is exported, so that programs load; what is not implemented answers 801. Names that end
with ``_ptsz`` or ``_ptds`` (of programs compiled for a default stream for each thread) are other names of the same functions.
"""

from __future__ import annotations

import hashlib
import re
from glob import glob
from pathlib import Path
from typing import Any

from native import FLAGS, INCLUDES, MACROS

GENERATED = Path("build/cuda")
FOLDER = "ptxemu/cuda/lib"
SUFFIXES = ("_ptsz", "_ptds")
OWN = ("ptxemu_last_fault",)
SPECIAL = {"cuda/version_12.c", "cuda/version_13.c", "cuda/ocelot.c", "cuda/embed.c", "cuda/preload.c"}
COMMON = sorted(set(glob("cuda/*.c")) - SPECIAL)
DRIVER = sorted(glob("cuda/driver/*.c"))
SOURCES = [*COMMON, *sorted(SPECIAL), *DRIVER]
HEADERS = sorted([*glob("cuda/**/*.h", recursive=True), *glob("ptxemu/include/*.h")])
NAMES = sorted(glob("cuda/names/*.txt"))
FOLDERS = ("cuda", "cuda/driver", "ptxemu/include")

LIBRARIES = {
    "ptxemu.cuda.lib.cudart12": "libcudart.so.12",
    "ptxemu.cuda.lib.cudart13": "libcudart.so.13",
    "ptxemu.cuda.lib.driver": "libcuda.so.1",
    "ptxemu.cuda.lib.ocelot": "libgpuocelot.so",
    "ptxemu.cuda.lib.embed": "libptxemu_embed.so",
    "ptxemu.cuda.lib.preload": "libptxemu_preload.so",
}
"""The file of each extension, by its name."""


def names_of(path: Path, version: str) -> list[str]:
    """The names that a version of a library has."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [line[0] for line in lines if version in line[1:] or not line[1:]]


def base_of(name: str) -> str | None:
    """What a name is another name of."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), None)


def stubs(names: list[str], answer: str) -> str:
    """C source of a weak function for each name, which the library's own functions replace; it returns what ``answer`` does."""
    head = [
        "/* Made by tools/cuda.py. */",
        f"int {answer}(void);",
        f'#define WEAK(name) __attribute__((weak, visibility("default"))) int name(void) {{ return {answer}(); }}',
    ]
    own = sorted({base_of(name) or name for name in names})
    return "\n".join([*head, *(f"WEAK({name})" for name in own), ""])


def version_script(names: list[str], node: str) -> str:
    return f"{node} {{ global: {'; '.join(sorted(names))}; local: *; }};\n"


def other_names(names: list[str]) -> list[str]:
    """Options of the linker for the other names of functions."""
    return [f"-Wl,--defsym={name}={base}" for name in names if (base := base_of(name))]


def write(path: Path, text: str) -> str:
    """Write a file unless it has these contents already; its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return str(path)


def build_hash() -> str:
    """The hash of all sources."""
    digest = hashlib.sha256()
    for path in sorted([*Path("ptxemu").rglob("*.py"), *Path("csrc").rglob("*.[ch]"), *Path("cuda").rglob("*.[ch]")]):
        if path.name != "_tables.py":
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def library(name: str, sources: list[str], script: str, options: list[str]) -> dict[str, Any]:
    """What setuptools wants to know of a library."""
    build = write(GENERATED / "build.c", f'extern const char px_build[];\nconst char px_build[] = "{build_hash()}";\n')
    soname = LIBRARIES[name]
    return {
        "name": name,
        "sources": [*COMMON, build, *sources],
        "depends": [*HEADERS, "tools/cuda.py", *NAMES],
        "include_dirs": [*FOLDERS, *INCLUDES],
        "define_macros": MACROS,
        "libraries": ["ptxemu", "m", "dl"],
        "extra_compile_args": FLAGS,
        "extra_link_args": [
            "-pthread",
            f"-Wl,-soname,{soname}",
            f"-Wl,--version-script={script}",
            "-Wl,-rpath,$ORIGIN/../..",
            "-Wl,-z,defs",
            *options,
        ],
    }


def cudart(version: str) -> dict[str, Any]:
    names = names_of(Path("cuda/names/cudart.txt"), version)
    made = write(GENERATED / f"cudart_{version}.c", stubs(names, "px_not_supported"))
    script = write(GENERATED / f"cudart_{version}.map", version_script([*names, *OWN], f"libcudart.so.{version}"))
    return library(f"ptxemu.cuda.lib.cudart{version}", [f"cuda/version_{version}.c", made], script, other_names(names))


def versions(path: Path) -> dict[str, int]:
    """The names in a list, with the version of CUDA behind each; 0 where there is none."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {line[0]: int(line[1]) if line[1:] else 0 for line in lines}


def procs(names: dict[str, int]) -> str:
    """C source of the table that cuGetProcAddress searches."""
    known = {name: version for name, version in names.items() if version}
    head = ["/* Made by tools/cuda.py. */", "#include <stddef.h>", '#include "proc.h"', *(f"int {name}(void);" for name in known)]
    rows = [f'  {{"{name}", {version}, {name}}},' for name, version in known.items()]
    return "\n".join([*head, "const px_proc px_procs[] = {", *rows, "  {NULL, 0, NULL}};", ""])


def driver() -> dict[str, Any]:
    names = versions(Path("cuda/names/cuda.txt"))
    made = write(GENERATED / "driver.c", stubs(list(names), "px_driver_not_supported"))
    table = write(GENERATED / "driver_procs.c", procs(names))
    script = write(GENERATED / "driver.map", version_script([*names, *OWN], ""))
    return library("ptxemu.cuda.lib.driver", [*DRIVER, "cuda/version_13.c", made, table], script, other_names(list(names)))


def ocelot() -> dict[str, Any]:
    script = write(GENERATED / "ocelot.map", version_script(["ptx_run", *OWN], "OCELOT"))
    return library("ptxemu.cuda.lib.ocelot", ["cuda/ocelot.c", "cuda/version_13.c"], script, [])


def embed() -> dict[str, Any]:
    header = Path("ptxemu/include/ptxemu_embed.h").read_text()
    names = re.findall(r"^[a-z_ ]+[ *](ptxemu_[a-z]+)\(", header, re.MULTILINE)
    script = write(GENERATED / "embed.map", version_script(names, "PTXEMU_EMBED_1"))
    return library("ptxemu.cuda.lib.embed", ["cuda/embed.c", "cuda/version_13.c"], script, [])


def preload() -> dict[str, Any]:
    """It is in every process of ``ptxemu cuda``, and loads the others where they are needed."""
    name = "ptxemu.cuda.lib.preload"
    return {
        "name": name,
        "sources": ["cuda/preload.c"],
        "depends": ["tools/cuda.py"],
        "define_macros": MACROS,
        "libraries": ["dl"],
        "extra_compile_args": FLAGS,
        "extra_link_args": [f"-Wl,-soname,{LIBRARIES[name]}", "-Wl,-rpath,$ORIGIN", "-Wl,-z,defs"],
    }


def extensions() -> list[dict[str, Any]]:
    return [cudart("12"), cudart("13"), driver(), ocelot(), embed(), preload()]
