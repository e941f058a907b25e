"""The C runtime (csrc/), as cffi exposes it."""

from typing import Any

ffi: Any
lib: Any
