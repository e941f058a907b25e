"""The cffi recipe of the extension ``ptxemu._runtime``: every ``csrc/*/*.c``, declared by the headers' CDEF sections."""

from __future__ import annotations

import re
from glob import glob
from os.path import basename, dirname

from cffi import FFI

HEADERS = sorted(glob("csrc/*/*.h"), key=lambda path: (path != "csrc/include/ptxemu.h", path))
CDEF = re.compile(r"/\* CDEF BEGIN \*/(.*?)/\* CDEF END \*/", re.DOTALL)


def declarations(path: str) -> str:
    """The text between the CDEF markers of a header: empty for private headers."""
    with open(path, encoding="utf-8") as file:
        return "\n".join(CDEF.findall(file.read()))


# -Wno-psabi: vectors are passed inside of one file only, so that their ABI does not matter.
WARNINGS = ["-Wall", "-Wextra", "-Wno-psabi"]
FLAGS = ["-std=gnu11", "-O2", "-ffp-contract=off", "-pthread", "-fvisibility=hidden", *WARNINGS]
SOURCES = sorted(glob("csrc/*/*.c"))
INCLUDES = sorted({dirname(header) for header in HEADERS})
MACROS = [("_GNU_SOURCE", "1")]

ffi = FFI()
public = [path for path in HEADERS if declarations(path)]
for header in public:
    ffi.cdef(declarations(header))
ffi.set_source(
    "ptxemu._runtime",
    "\n".join(f'#include "{basename(header)}"' for header in public),
    sources=SOURCES,
    depends=[*HEADERS, "tools/extension.py"],
    include_dirs=INCLUDES,
    define_macros=MACROS,
    libraries=["m"],
    extra_compile_args=FLAGS,
    extra_link_args=["-pthread"],
)
