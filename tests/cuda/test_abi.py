"""Sizes and offsets of the structures in cuda/abi.h and cuda/driver/driver_abi.h, against CUDA's own headers where nvcc is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.places import ROOT

CUDA = Path("/usr/local/cuda/include")
STRUCT = re.compile(r"typedef struct \w+ \{(.*?)\n\} (\w+);", re.DOTALL)
OURS = {"pad", "srcContext", "dstContext"}  # fields that have other names in CUDA's headers
FIELD = re.compile(r"(\w+)(?:\[\d+\])?[,;]")


def fields(body: str) -> list[str]:
    """Names of the outermost fields of a structure."""
    text = re.sub(r"/\*.*?\*/", "", body)
    while (inner := re.sub(r"\{[^{}]*\}", "", text)) != text:
        text = inner
    return [name for name in FIELD.findall(text) if not name.isdigit()]


def source(header: str, declared: Path) -> str:
    structures = {name: fields(body) for body, name in STRUCT.findall(declared.read_text())}
    structures.pop("px_fat_wrapper", None)
    assert len(structures) >= 10
    lines = []
    for name, members in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{member} %zu\\n", offsetof({name}, {member}));' for member in members if member not in OURS]
    return f"#include <cstdio>\n#include <cstddef>\n#include {header}\nint main() {{ {' '.join(lines)} }}\n"


def printed(folder: Path, header: str, include: Path, declared: Path) -> list[str]:
    path, made = folder / "sizes.cpp", folder / "sizes"
    folder.mkdir()
    path.write_text(source(header, declared))
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    subprocess.run([*compiler, "-w", f"-I{include}", f"-I{ROOT / 'cuda'}", "-o", made, path], check=True)
    return subprocess.check_output([made], text=True).splitlines()


@pytest.mark.skipif(not (CUDA / "cuda_runtime_api.h").exists() or not shutil.which("nvcc"), reason="CUDA's headers are not here")
@pytest.mark.parametrize(("ours", "theirs"), [("abi.h", "cuda_runtime_api.h"), ("driver/driver_abi.h", "cuda.h")])
def test_structures_are_laid_out_as_cudas(tmp_path, ours, theirs):
    declared = ROOT / "cuda" / ours
    found = printed(tmp_path / "ours", f'"{ours}"', ROOT / "cuda", declared)
    assert found == printed(tmp_path / "theirs", f"<{theirs}>", CUDA, declared)
