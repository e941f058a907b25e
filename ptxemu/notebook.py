"""Magics of notebooks: ``%load_ext ptxemu``, then cells that begin with ``%%ptx`` or ``%%cuda``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ptxemu.api import Module, loads
from ptxemu.cli.programs import read_program
from ptxemu.text.errors import InputError, shown

DEFAULT_NAME = "module"


class Magics:
    """The two magics of one shell, which is what IPython calls ``InteractiveShell``."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        shell.register_magic_function(self.ptx, "cell", "ptx")
        shell.register_magic_function(self.cuda, "cell", "cuda")

    def ptx(self, line: str, cell: str) -> Module:
        """``%%ptx [NAME]``: load the PTX in the cell; the variable NAME, or ``module``, is the module."""
        name = self._vacated(line)
        return self._defined(name, cell, "cell.ptx")

    def cuda(self, line: str, cell: str) -> Module:
        """``%%cuda [NAME]``: the same with CUDA C++, which nvcc compiles; NVCC_APPEND_FLAGS gives it options."""
        name = self._vacated(line)
        with tempfile.TemporaryDirectory(prefix="ptxemu-") as folder:
            file = Path(folder) / "cell.cu"
            file.write_text(cell, encoding="utf-8")
            text = read_program(file).text
        return self._defined(name, text, "cell.cu.ptx")

    def _vacated(self, line: str) -> str:
        """The name that a cell gives. Whatever is wrong with the cell, what had the name before is not taken for it."""
        name = line.strip() or DEFAULT_NAME
        if not name.isidentifier():
            raise InputError(f"a cell is called by the name of a variable, not {shown(name)}")
        self.shell.user_ns.pop(name, None)
        return name

    def _defined(self, name: str, text: str, filename: str) -> Module:
        module = loads(text, filename=filename)
        self.shell.user_ns[name] = module
        return module
