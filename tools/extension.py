"""The cffi recipe of the extension ``ptxemu._runtime``: what Python sees of ``libptxemu.so``, the headers' CDEF sections."""

from __future__ import annotations

import re
from os.path import basename

from cffi import FFI
from native import FLAGS, HEADERS, INCLUDES, MACROS

CDEF = re.compile(r"/\* CDEF BEGIN \*/(.*?)/\* CDEF END \*/", re.DOTALL)


def declarations(path: str) -> str:
    """The text between the CDEF markers of a header: empty for private headers."""
    with open(path, encoding="utf-8") as file:
        return "\n".join(CDEF.findall(file.read()))


ffi = FFI()
public = [path for path in HEADERS if declarations(path)]
for header in public:
    ffi.cdef(declarations(header))
ffi.set_source(
    "ptxemu._runtime",
    "\n".join(f'#include "{basename(header)}"' for header in public),
    depends=[*HEADERS, "tools/extension.py", "tools/native.py"],
    include_dirs=INCLUDES,
    define_macros=MACROS,
    libraries=["ptxemu"],
    extra_compile_args=FLAGS,
    extra_link_args=["-Wl,-rpath,$ORIGIN"],
)
