"""The build steps that pyproject.toml cannot state: the C extension and the parser's tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Imports the table generator without ptxemu/__init__.py, whose imports a build environment lacks.
GENERATE = """
import sys, types
package = types.ModuleType("ptxemu")
package.__path__ = ["ptxemu"]
sys.modules["ptxemu"] = package
sys.path.insert(0, ".")
from ptxemu.syntax.tables import generate
generate(sys.argv[1])
"""


class BuildPy(build_py):
    """``build_py`` that also generates the parser's tables, in place for editable installs."""

    def run(self) -> None:
        super().run()
        target = Path("." if self.editable_mode else self.build_lib) / "ptxemu/syntax/_tables.py"
        subprocess.run([sys.executable, "-c", GENERATE, str(target)], check=True)


setup(cffi_modules=["runtime/build.py:ffi"], cmdclass={"build_py": BuildPy})
