"""How ``cuda/*.c`` becomes the CUDA libraries, which lie over ``libptxemu.so``: names and generated sources.

``libptxemu_cuda.so`` holds the device and all functions of both APIs. A process has it once, whichever libraries it loads, in
whatever order and scope: ``libcuda.so.1`` and ``libcudart.so`` are jumps into it. There functions have a prefix, so that nothing
of a program that is called as they are takes their place.

Every name that CUDA's own library exports is exported, so that programs load; what is not implemented answers 801. Names that end
with ``_ptsz`` or ``_ptds`` (of programs compiled for a default stream for each thread) are other names of the same functions.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import Any

from native import FLAGS, INCLUDES, MACROS

GENERATED = Path("build/cuda")
FOLDER = "ptxemu/cuda/lib"
SUFFIXES = ("_ptsz", "_ptds")
OWN = ("ptxemu_last_fault",)
VERSION_SOURCES = {
    "11": ["cuda/before_13.c", "cuda/version_11.c"],
    "12": ["cuda/before_13.c", "cuda/version_12.c"],
    "13": ["cuda/version_13.c"],
}
"""What each version of the runtime has otherwise than others."""
SPECIAL = {*(source for sources in VERSION_SOURCES.values() for source in sources), "cuda/ocelot.c", "cuda/embed.c"}
COMMON = sorted(set(glob("cuda/*.c")) - SPECIAL)
DRIVER = sorted(glob("cuda/driver/*.c"))
PRELOAD = sorted(glob("cuda/preload/*.c"))
SOURCES = [*COMMON, *sorted(SPECIAL), *DRIVER, *PRELOAD]
HEADERS = sorted([*glob("cuda/**/*.h", recursive=True), *glob("ptxemu/include/*.h")])
NAMES = sorted(glob("cuda/names/*.txt"))
FOLDERS = ("cuda", "cuda/driver", "cuda/preload", "ptxemu/include")
RUNTIME_NAMES, DRIVER_NAMES = Path("cuda/names/cudart.txt"), Path("cuda/names/cuda.txt")
LINKER_NAMES = Path("cuda/names/nvjitlink.txt")

CORE = "ptxemu.cuda.lib.core"
CORE_PREFIX = "ptxemu_core_"
HELPERS = (
    "px_function_attributes_of_11",
    "px_graph_update_of_11",
    "px_properties_of_11",
    "px_properties_of_13",
    "px_tell_version",
    "px_texture_object_of_11",
    "px_texture_object_of_13",
)
"""Functions of the core that versions of the runtime need besides those of the API."""

LIBRARIES = {
    CORE: "libptxemu_cuda.so",
    "ptxemu.cuda.lib.cudart11": "libcudart.so.11.0",
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


def aliases(path: Path, names: dict[str, str]) -> str:
    """An option of the linker for other names of functions; ``names`` has the functions by these."""
    options = "".join(f"--defsym={name}={function}\n" for name, function in names.items())
    return f"-Wl,@{write(path, options)}"


def jumps(names: list[str]) -> str:
    """C source of a weak function for each name, which jumps to the core's."""
    own = sorted({base_of(name) or name for name in names})
    return "\n".join(["/* Made by tools/cuda.py. */", '#include "jump.h"', *(f"PX_JUMP({name})" for name in own), ""])


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


def extension(name: str, sources: list[str], libraries: list[str], script: str, options: list[str]) -> dict[str, Any]:
    """What setuptools wants to know of a library."""
    return {
        "name": name,
        "sources": sources,
        "depends": [*HEADERS, "tools/cuda.py", *NAMES],
        "include_dirs": [*FOLDERS, *INCLUDES],
        "define_macros": MACROS,
        "libraries": libraries,
        "extra_compile_args": FLAGS,
        "extra_link_args": [
            "-pthread",
            f"-Wl,-soname,{LIBRARIES[name]}",
            f"-Wl,--version-script={script}",
            "-Wl,-rpath,$ORIGIN:$ORIGIN/../..",
            "-Wl,-z,defs",
            *options,
        ],
    }


def whole(name: str, sources: list[str], script: str, options: list[str]) -> dict[str, Any]:
    """A library with a device of its own."""
    build = write(GENERATED / "build.c", f'extern const char px_build[];\nconst char px_build[] = "{build_hash()}";\n')
    return extension(name, [*COMMON, build, *sources], ["ptxemu", "m", "dl"], script, options)


def runtime_names() -> list[str]:
    """Those of all versions."""
    return sorted({name for version in VERSION_SOURCES for name in names_of(RUNTIME_NAMES, version)})


def core() -> dict[str, Any]:
    runtime = runtime_names()
    driver = versions(DRIVER_NAMES)
    made = [
        write(GENERATED / "runtime.c", stubs(runtime, "px_not_supported")),
        write(GENERATED / "driver.c", stubs(list(driver), "px_driver_not_supported")),
        write(GENERATED / "driver_procs.c", procs(driver)),
    ]
    linker = [*versions(LINKER_NAMES), "px_jitlink_found"]
    functions = [name for name in [*runtime, *driver, *linker, *HELPERS, *OWN] if not base_of(name)]
    names = aliases(GENERATED / "core.names", {CORE_PREFIX + name: name for name in functions})
    script = write(GENERATED / "core.map", version_script([f"{CORE_PREFIX}*"], ""))
    return whole(CORE, [*DRIVER, *made], script, [names, "-Wl,-z,nodelete"])  # threads run in it


def thin(name: str, names: list[str], node: str, sources: Sequence[str] = (), used: Sequence[str] = ()) -> dict[str, Any]:
    """A library of jumps into the core, and functions of its own, which use some of the core's that it does not export."""
    short = name.rpartition(".")[2]
    made = write(GENERATED / f"{short}_jumps.c", jumps([*names, *used, *OWN]))
    script = write(GENERATED / f"{short}.map", version_script([*names, *OWN], node))
    others = aliases(GENERATED / f"{short}.names", {one: base for one in names if (base := base_of(one))})
    needed = ["-Wl,--no-as-needed", "-lptxemu_cuda"]  # although all references are weak
    return extension(name, [made, *sources], [], script, [others, *needed])


def cudart(version: str) -> dict[str, Any]:
    names = names_of(RUNTIME_NAMES, version)
    name = f"ptxemu.cuda.lib.cudart{version}"
    return thin(name, names, LIBRARIES[name], VERSION_SOURCES[version], [*runtime_names(), *HELPERS])


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
    return thin("ptxemu.cuda.lib.driver", list(versions(DRIVER_NAMES)), "")


def ocelot() -> dict[str, Any]:
    script = write(GENERATED / "ocelot.map", version_script(["ptx_run", *OWN], "OCELOT"))
    return whole("ptxemu.cuda.lib.ocelot", ["cuda/ocelot.c"], script, [])


def embed() -> dict[str, Any]:
    header = Path("ptxemu/include/ptxemu_embed.h").read_text()
    names = re.findall(r"^[a-z_ ]+[ *](ptxemu_[a-z_]+)\(", header, re.MULTILINE)
    script = write(GENERATED / "embed.map", version_script(names, "PTXEMU_EMBED_1"))
    return whole("ptxemu.cuda.lib.embed", ["cuda/embed.c"], script, [])


def preload() -> dict[str, Any]:
    """It is in every process of ``ptxemu cuda``. The others come with it: it is initialised before a library could open them."""
    runtimes = [f"-l:{LIBRARIES[f'ptxemu.cuda.lib.cudart{version}']}" for version in VERSION_SOURCES]
    script = write(GENERATED / "preload.map", "{ local: *; };\n")
    needed = ["-Wl,--no-as-needed", *runtimes, "-Wl,-z,initfirst"]
    return extension("ptxemu.cuda.lib.preload", PRELOAD, ["dl"], script, needed)


def extensions() -> list[dict[str, Any]]:
    return [core(), *map(cudart, VERSION_SOURCES), driver(), ocelot(), embed(), preload()]
