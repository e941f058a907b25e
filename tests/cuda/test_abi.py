"""Sizes and offsets of the structures in cuda/abi.h, against CUDA's own headers where nvcc is."""

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
FIELD = re.compile(r"(\w+)(?:\[\d+\])?[,;]")


def fields(body: str) -> list[str]:
    """Names of the outermost fields of a structure."""
    text = re.sub(r"/\*.*?\*/", "", body)
    while (inner := re.sub(r"\{[^{}]*\}", "", text)) != text:
        text = inner
    return [name for name in FIELD.findall(text) if not name.isdigit()]


def source(header: str) -> str:
    structures = {name: fields(body) for body, name in STRUCT.findall((ROOT / "cuda" / "abi.h").read_text())}
    del structures["px_fat_wrapper"]
    assert len(structures) > 12
    lines = []
    for name, members in structures.items():
        lines.append(f'printf("{name} %zu\\n", sizeof({name}));')
        lines += [f'printf("{name}.{member} %zu\\n", offsetof({name}, {member}));' for member in members if member != "pad"]
    return f"#include <cstdio>\n#include <cstddef>\n#include {header}\nint main() {{ {' '.join(lines)} }}\n"


def printed(folder: Path, header: str, include: Path) -> list[str]:
    path, made = folder / "sizes.cpp", folder / "sizes"
    path.write_text(source(header))
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    subprocess.run([*compiler, "-w", f"-I{include}", "-o", made, path], check=True)
    return subprocess.check_output([made], text=True).splitlines()


@pytest.mark.skipif(not (CUDA / "cuda_runtime_api.h").exists() or not shutil.which("nvcc"), reason="CUDA's headers are not here")
def test_structures_are_laid_out_as_cudas(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    assert printed(ours, '"abi.h"', ROOT / "cuda") == printed(theirs, "<cuda_runtime_api.h>", CUDA)
