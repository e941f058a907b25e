"""The package as users get it: from a checkout, from an sdist, as a wheel, in empty environments, used from other folders.

Everything is built in isolation, so that the package registry is needed, as ``make`` itself needs it.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.places import ROOT

FOLDERS = ("ptxemu", "csrc", "cuda", "tools", "samples", "docs", "tests", "bench")
FILES = (
    *("pyproject.toml", "setup.py", "MANIFEST.in", "Makefile", ".clang-format", ".pre-commit-config.yaml"),
    *("README.md", "LICENSE", "CHANGELOG.md"),
)
BUILT = ("__pycache__", "*.so*", "python.path", "_tables.py", "build")
TABLES = "ptxemu/syntax/_tables.py"
OBJECTS = Path("build", "objects")
CUDA = {
    f"ptxemu/cuda/lib/{name}"
    for name in (
        "libcuda.so.1",
        "libptxemu_cuda.so",
        "libcudart.so.11.0",
        "libcudart.so.12",
        "libcudart.so.13",
        "libgpuocelot.so",
        "libptxemu_embed.so",
        "libptxemu_preload.so",
    )
}
RUNTIME = {"ptxemu/_runtime.abi3.so", "ptxemu/libptxemu.so", *CUDA}


def attempt(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in an environment without what ``make test`` and developers set."""
    left_out = ("PYTHONPATH", "VIRTUAL_ENV", "CC", "CFLAGS", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    environment = {key: value for key, value in os.environ.items() if key not in left_out}
    environment |= {"PIP_NO_COMPILE": "1"} | variables  # Python compiles what is imported, which is a part of it
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, env=environment)


def call(*command: str | Path, cwd: Path, **variables: str) -> str:
    done = attempt(*command, cwd=cwd, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def checkout(tree: Path) -> Path:
    """A copy of the project without anything that was built in it."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns(*BUILT))
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)
    return tree


def bring_objects(tree: Path) -> None:
    """Copy the objects that this checkout was built with, as if they had been compiled in the tree."""
    for file in filter(Path.is_file, (ROOT / OBJECTS).rglob("*")):
        name = file.relative_to(ROOT)
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".command":  # which names folders of the checkout
            (tree / name).write_text(file.read_text().replace(str(ROOT), str(tree)))
        elif (ROOT / name.relative_to(OBJECTS)).with_suffix(".c").exists():
            shutil.copy2(file, tree / name)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was built from it, in half the time that optimized code takes."""
    tree = checkout(tmp_path_factory.mktemp("tree"))
    call(sys.executable, "-m", "build", tree, cwd=tree, CFLAGS="-O0")
    return tree / "dist"


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    (file,) = dist.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an empty environment in which the wheel was installed, where no compiler is found."""
    folder = tmp_path_factory.mktemp("fresh")
    python = folder / "bin" / "python"
    call(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder)
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", wheel, cwd=folder, PATH=str(folder / "bin"))
    return python


def python_with_packages(folder: Path) -> Path:
    """A command like this Python, whose environments hold what this one holds, so that nothing is downloaded and unpacked again.

    (The wheel comes with what it needs, into an empty environment.)
    """
    command = folder / "python"
    packages = sysconfig.get_path("purelib")
    line = f'[ "$2" = venv ] && echo {packages} > "$(echo "$3"/lib/python*/site-packages)/packages.pth"'
    command.write_text(f'#!/bin/sh\n{sys.executable} "$@" || exit\n{line}\n')
    command.chmod(0o755)
    return command


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A checkout in which ``make run`` was called, and what that printed. (``dist`` is what compiles everything.)"""
    tree = checkout(tmp_path_factory.mktemp("made"))
    bring_objects(tree)
    python = python_with_packages(tmp_path_factory.mktemp("command"))
    return tree, call("make", "run", f"PYTHON={python}", cwd=tree).splitlines()


# ---------------------------------------------------------------- what the archives hold


def test_sdist_holds_the_sources(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    found = (path for folder in ("csrc", "cuda", "tools") for path in (ROOT / folder).rglob("*.*"))
    sources = {str(path.relative_to(ROOT)) for path in found if "__pycache__" not in path.parts}
    assert names > {*sources, *FILES, "ptxemu/py.typed", "samples/saxpy/kernel.ptx", "tests/project/test_packaging.py"}
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc")) or name == TABLES]


def test_one_wheel_serves_all_versions_of_python(wheel):
    platform = re.sub(r"\W", "_", sysconfig.get_platform())
    assert wheel.name.split("-", 2)[2] == f"cp311-abi3-{platform}.whl"


def test_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {str(path.relative_to(ROOT)) for path in (ROOT / "ptxemu").rglob("*.py*") if path.suffix in (".py", ".pyi")}
    headers = {f"ptxemu/include/{path.name}" for path in (ROOT / "ptxemu" / "include").iterdir()}
    assert names == {*sources, *headers, TABLES, *RUNTIME, "ptxemu/py.typed"}


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def third_party_imports() -> set[str]:
    """What the package's modules import that is neither their own nor Python's; distributions are named so too."""
    names = {name for path in (ROOT / "ptxemu").rglob("*.py") for name in imports(ast.parse(path.read_text()))}
    return {name.partition(".")[0] for name in names} - {"ptxemu", *sys.stdlib_module_names}


def test_required_is_what_is_imported(metadata):
    requirements = {re.match(r"[\w-]+", line)[0]: line for line in metadata.get_all("Requires-Dist")}
    always = {name for name, line in requirements.items() if "extra ==" not in line}
    assert always | {"PIL", "pytest", "distributed"} == third_party_imports() | {"cffi"}
    assert 'extra == "images"' in requirements["pillow"]
    assert any('extra == "pytest"' in line for line in metadata.get_all("Requires-Dist") if line.startswith("pytest"))
    assert metadata["Requires-Python"] == ">=3.11"


# ---------------------------------------------------------------- the wheel in use


def test_installed_package_runs_a_sample_without_a_warning(python, tmp_path):
    where = call(python, "-c", "import ptxemu; print(ptxemu.__file__)", cwd=tmp_path)
    assert str(python.parent.parent) in where
    out = call(python, "-W", "error", "-m", "ptxemu", "run", ROOT / "samples" / "saxpy", cwd=tmp_path, PATH="")
    assert [line.partition(":")[0].strip() for line in out.splitlines()] == ["saxpy", "y"]
    assert "passed" in out


def test_installed_package_generates_no_tables(python, tmp_path):
    code = (
        "from ply import yacc; del yacc.LRGeneratedTable\n"
        "from ptxemu.syntax.tables import tables\n"
        "print(len(tables().productions) > 100)"
    )
    assert call(python, "-c", code, cwd=tmp_path) == "True\n"


def test_installed_package_writes_nothing_into_itself(python, tmp_path):
    folder = next(python.parent.parent.glob("lib/python*/site-packages/ptxemu"))
    before = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    call(python, "-m", "ptxemu", "info", ROOT / "samples" / "blur" / "kernel.ptx", cwd=tmp_path)
    assert sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts) == before


# ---------------------------------------------------------------- a checkout


def test_make_run_prints_what_it_does_and_the_results(made):
    _, lines = made
    commands = ("-m venv .venv", ".venv/bin/")
    printed = [line for line in lines if not any(command in line for command in commands)]
    assert [line.partition(":")[0].strip() for line in printed] == [
        "saxpy",
        "y",
        "mandelbrot",
        "counts",
        "picture",
        "saved out/mandelbrot.png",
    ]
    assert len(lines) - len(printed) == 3  # the environment, what it holds, the samples


def test_checkout_is_installed_with_its_tables(made, tmp_path):
    tree, _ = made
    python = tree / ".venv" / "bin" / "python"
    code = f"import ptxemu.syntax._tables as tables; print(tables.__file__ == {str(tree / TABLES)!r})"
    assert call(python, "-c", code, cwd=tmp_path) == "True\n"
    assert "passed" in call(python, "-W", "error", "-m", "ptxemu", "run", ROOT / "samples" / "saxpy", cwd=tmp_path)


def recompiled(tree: Path, name: str) -> set[str]:
    """The objects that make builds anew when a file was touched, with no command but those for the runtime."""
    before = {path: path.stat().st_mtime_ns for path in tree.glob("build/objects/**/*.o")}
    (tree / name).touch()
    printed = call("make", ".venv/ready", cwd=tree)
    assert printed == ".venv/bin/python setup.py --quiet build_ext --inplace\n"
    return {path.stem for path, time in before.items() if path.stat().st_mtime_ns != time}


def test_make_compiles_what_changed_and_nothing_else(made):
    tree, _ = made
    assert len(list(tree.glob("build/objects/csrc/*/*.o"))) == len(list((ROOT / "csrc").rglob("*.c")))
    assert recompiled(tree, "csrc/launch/clock.c") == {"clock"}
    users = {path.stem for path in (ROOT / "csrc").rglob("*.c") if '#include "sha256.h"' in path.read_text()}
    assert users <= recompiled(tree, "csrc/host/sha256.h") < {path.stem for path in (ROOT / "csrc").rglob("*.c")}
    assert "up to date" in call("make", ".venv/ready", cwd=tree)


def test_make_links_anew_what_is_linked_in_another_way(made):
    tree, _ = made
    library, objects = tree / "ptxemu" / "libptxemu.so", tree.glob("build/objects/csrc/**/*.o")
    before, times = library.stat().st_mtime_ns, {path: path.stat().st_mtime_ns for path in objects}
    (tree / "setup.py").touch()
    call("make", ".venv/ready", cwd=tree, LDFLAGS="-Wl,-O1")
    assert library.stat().st_mtime_ns > before
    assert {path: path.stat().st_mtime_ns for path in times} == times


@pytest.mark.parametrize("name", ["grammar", "values", "symbols", "words"])
def test_make_generates_the_tables_when_the_grammar_changes(made, name):
    tree, _ = made
    command = f".venv/bin/python tools/tables.py {TABLES}\n"
    assert command in call("make", "--dry-run", f"--what-if=ptxemu/syntax/{name}.py", ".venv/ready", cwd=tree)


# ---------------------------------------------------------------- what goes wrong


def test_no_compiler_is_one_line(tmp_path):
    tree = checkout(tmp_path)
    message = "error: building ptxemu needs a C compiler, and '{}' was not found: install one, or set CC to yours"
    done = attempt(sys.executable, "setup.py", "--quiet", "bdist_wheel", cwd=tree, CC="absent-cc -pipe")
    assert done.returncode == 1 and done.stderr.splitlines() == [message.format("absent-cc")]
    done = attempt(sys.executable, "setup.py", "--quiet", "bdist_wheel", cwd=tree, PATH=str(tmp_path))
    assert done.returncode == 1 and re.fullmatch(message.format(r"\S+"), done.stderr.strip())


@pytest.mark.parametrize("build", ["build_wheel", "build_editable"])
def test_tables_that_cannot_be_generated_fail_the_build(made, build, tmp_path):
    """The objects are those that make left, so that nothing is compiled."""
    tree, _ = made
    grammar = tree / "ptxemu" / "syntax" / "grammar.py"
    text = grammar.read_text()
    grammar.write_text(text.replace("alias : ALIAS NAME", "alias : ALIAS NOTHING"))
    code = f"from setuptools import build_meta; build_meta.{build}({str(tmp_path)!r})"
    done = attempt(tree / ".venv" / "bin" / "python", "-c", code, cwd=tree)
    grammar.write_text(text)
    assert done.returncode != 0 and "'NOTHING' used, but not defined" in done.stderr
    assert not list(tmp_path.glob("*.whl"))
