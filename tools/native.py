"""How ``csrc/*/*.c`` becomes ``libptxemu.so``: all of the runtime, once in a process, for Python and for programs in C.

It exports what the headers declare in their CDEF sections.
"""

from __future__ import annotations

import os
from glob import glob
from os.path import dirname

HEADERS = sorted(
    glob("csrc/*/*.h"), key=lambda path: (path != "csrc/include/ptxemu.h", "/include/" not in path, "/host/" in path, path)
)
# -Wno-psabi: vectors are passed inside of one file only, so that their ABI does not matter.
WARNINGS = ["-Wall", "-Wextra", "-Wno-psabi"]
# What debuggers need is a fifth of the compiler's time and two thirds of the library. Python asks for it; here CFLAGS does,
# which may choose another level of optimization too.
CHOSEN = os.environ.get("CFLAGS", "").split()
DEBUG = [] if "-g" in CHOSEN else ["-g0"]
OPTIMIZE = [] if any(flag.startswith("-O") for flag in CHOSEN) else ["-O2"]
FLAGS = ["-std=gnu11", "-ffp-contract=off", "-pthread", "-fvisibility=hidden", *OPTIMIZE, *DEBUG, *WARNINGS]
SOURCES = sorted(glob("csrc/*/*.c"))
INCLUDES = sorted({dirname(header) for header in HEADERS})
MACROS = [("_GNU_SOURCE", "1")]

LIBRARY = {
    "sources": SOURCES,
    "depends": [*HEADERS, "tools/native.py"],
    "include_dirs": INCLUDES,
    "define_macros": MACROS,
    "libraries": ["m"],
    "extra_compile_args": FLAGS,
    "extra_link_args": ["-pthread", "-Wl,-Bsymbolic", "-Wl,-soname,libptxemu.so"],
}
