"""The build steps that pyproject.toml cannot state: the C library, the extension over it, and the parser's tables."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import PlatformError

sys.path.append("tools")
import native

import cuda

LIBRARY = "ptxemu.libptxemu"
PLAIN = {LIBRARY: "libptxemu.so", **cuda.LIBRARIES}
"""Libraries that are no modules of Python: their files by the names of their extensions."""
TABLES = "ptxemu/syntax/_tables.py"
OBJECTS = "build/objects"


class Build(build):
    """``build``, with the extension first: where it cannot be built, nothing else is done."""

    sub_commands: ClassVar = [*sorted(build.sub_commands, key=lambda command: command[0] != "build_ext"), ("build_tables", None)]


class BuildExt(build_ext):
    """``build_ext`` that compiles on all cores, and only what has changed since."""

    def finalize_options(self) -> None:
        self.build_temp = self.build_temp or OBJECTS  # not a folder that is gone the next time
        super().finalize_options()

    def build_extensions(self) -> None:
        require_compiler(self.compiler.compiler_so[0])
        self.compiler.compile = partial(compile_changed, self.compiler.compile, self.compiler)
        linked_to = {LIBRARY: 0, cuda.CORE: 1}
        self.extensions.sort(key=lambda item: linked_to.get(item.name, len(linked_to)))
        for item in self.extensions[1:]:
            item.library_dirs += [str(Path(self.get_ext_fullpath(name)).parent) for name in linked_to]
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Links again, too, what is to be linked in another way: setuptools looks at the times of files alone."""
        told = repr((self.compiler.linker_so, ext.libraries, ext.library_dirs, ext.extra_link_args))
        record = Path(self.build_temp, f"{ext.name}.link")
        if not record.exists() or record.read_text() != told:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        super().build_extension(ext)
        record.write_text(told)

    def copy_extensions_to_source(self) -> None:
        """For builds in place, whose CUDA libraries start this Python to compile."""
        Path(cuda.FOLDER).mkdir(parents=True, exist_ok=True)
        Path(cuda.FOLDER, "python.path").write_text(sys.executable + "\n")
        super().copy_extensions_to_source()

    def get_ext_filename(self, fullname: str) -> str:
        for name, file in PLAIN.items():
            if fullname == name:
                return str(Path(*name.split(".")[:-1], file))
            if fullname == name.rpartition(".")[2]:  # setuptools asks with and without the package
                return file
        return super().get_ext_filename(fullname)


def require_compiler(command: str) -> None:
    if shutil.which(command) is None:
        raise PlatformError(f"building ptxemu needs a C compiler, and {command!r} was not found: install one, or set CC to yours")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise PlatformError("building ptxemu needs the headers of Python, and they were not found: install python3-dev(el)")


def compile_changed(compile_: Any, compiler: Any, sources: list[str], output_dir: str, **options: Any) -> list[str]:
    """As ``compiler.compile``, but leaves objects alone that are newer than all files they were made of."""
    options["extra_postargs"] = [*options["extra_postargs"], "-MMD"]  # the compiler writes down which files these are
    objects = compiler.object_filenames(sources, output_dir=output_dir)
    told = repr((compiler.compiler_so, compiler.include_dirs, options))
    record = Path(objects[0]).with_suffix(".command")
    record.parent.mkdir(parents=True, exist_ok=True)
    if not record.exists() or record.read_text() != told:
        for made in objects:
            Path(made).unlink(missing_ok=True)
        record.write_text(told)
    changed = [source for source, made in zip(sources, objects) if not is_fresh(Path(made))]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(lambda source: compile_([source], output_dir, **options), changed))
    return objects


def is_fresh(made: Path) -> bool:
    """Whether an object is newer than the files in the rule that the compiler wrote next to it."""
    try:
        rule = made.with_suffix(".d").read_text()
        parts = shlex.split(rule.partition(": ")[2].replace("\\\n", " "))
        return bool(parts) and made.stat().st_mtime_ns > max(Path(part).stat().st_mtime_ns for part in parts)
    except FileNotFoundError:
        return False


class BuildTables(Command):
    """Generates the parser's tables, in place for editable installs."""

    description = "generate the parser's tables"
    user_options: ClassVar = []
    editable_mode = False

    def initialize_options(self) -> None:
        self.build_lib: str | None = None

    def finalize_options(self) -> None:
        self.set_undefined_options("build_py", ("build_lib", "build_lib"))

    def run(self) -> None:
        self.spawn([sys.executable, "tools/tables.py", TABLES if self.editable_mode else self.get_outputs()[0]])

    def get_source_files(self) -> list[str]:
        return ["tools/tables.py"]

    def get_outputs(self) -> list[str]:
        return [f"{self.build_lib}/{TABLES}"]

    def get_output_mapping(self) -> dict[str, str]:
        return {self.get_outputs()[0]: TABLES} if self.editable_mode else {}


setup(
    ext_modules=[Extension(LIBRARY, **native.LIBRARY), *(Extension(**item) for item in cuda.extensions())],
    cffi_modules=["tools/extension.py:ffi"],
    cmdclass={"build": Build, "build_ext": BuildExt, "build_tables": BuildTables},
    options={} if sysconfig.get_config_var("Py_GIL_DISABLED") else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
