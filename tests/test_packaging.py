"""The sdist and the wheel: built, installed in a fresh environment and used from outside the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("ptxemu", "csrc", "runtime", "samples", "docs", "tests", "bench")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "Makefile")

# One process runs them all, so that everything is built once (pytest -n auto --dist loadgroup).
pytestmark = pytest.mark.xdist_group("packaging")


def call(*command: str | Path, cwd: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CFLAGS")}
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of a copy of the tree without anything that was built in it."""
    tree = tmp_path_factory.mktemp("tree")
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "_tables.py", "_runtime.c", "build")
    for name in COPIED:
        shutil.copytree(ROOT / name, tree / name, ignore=ignore)
    for name in FILES:
        shutil.copy(ROOT / name, tree / name)
    call(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", tree / "dist", tree, cwd=tree)
    (made,) = (tree / "dist").glob("*.tar.gz")
    return made


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as pip does."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    call(*pip, "--wheel-dir", folder, sdist, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment with the wheel; the dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=False, symlinks=True)
    interpreter = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site)
    call(*pip, wheel, cwd=folder)
    (site / "dependencies.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    return interpreter


def test_sdist_holds_the_sources(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for wanted in (
        "csrc/ptxemu.h",
        "runtime/build.py",
        "ptxemu/py.typed",
        "samples/saxpy/kernel.ptx",
        "tests/test_packaging.py",
        "LICENSE",
    ):
        assert wanted in names
    assert not [name for name in names if name.endswith((".so", ".pyc", "_tables.py"))]


def test_wheel_holds_what_runs(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert any(name.startswith("ptxemu/_runtime.") and name.endswith(".so") for name in names)
    for wanted in ("ptxemu/__init__.py", "ptxemu/py.typed", "ptxemu/_runtime.pyi", "ptxemu/syntax/_tables.py"):
        assert wanted in names
    assert not [name for name in names if name.startswith(("tests/", "samples/", "runtime/", "bench/"))]


def test_installed_package_runs_a_sample(python, tmp_path):
    where = call(python, "-c", "import ptxemu, sys; print(ptxemu.__file__)", cwd=tmp_path)
    assert str(python.parent.parent) in where
    out = call(python, "-m", "ptxemu", "run", ROOT / "samples" / "saxpy", cwd=tmp_path)
    assert "passed" in out


def test_installed_package_writes_nothing_into_itself(python, tmp_path):
    folder = next(python.parent.parent.glob("lib/python*/site-packages/ptxemu"))
    before = sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts)
    call(python, "-m", "ptxemu", "info", ROOT / "samples" / "blur" / "kernel.ptx", cwd=tmp_path)
    assert sorted(path for path in folder.rglob("*") if "__pycache__" not in path.parts) == before
