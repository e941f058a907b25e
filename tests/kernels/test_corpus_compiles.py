"""Modules as real compilers write them compile for every kind of processor, whichever of them this machine has."""

from __future__ import annotations

from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile

import ptxemu
from ptxemu.driver import compile as pipeline
from tests.support import processors
from tests.support.places import CORPUS

MODULES = sorted(path.stem for path in CORPUS.glob("*.ptx"))


def objects(name: str, cpu: str | None) -> list[bytes]:
    """The object code of each kernel of a module."""
    module = ptxemu.load(CORPUS / f"{name}.ptx")
    return [pipeline.kernel(module.program.ir, kernel, pipeline.Options(opt=0, cpu=cpu)).object for kernel in module]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("name", MODULES)
def test_with_avx2_and_with_avx512(name: str, level: str) -> None:
    assert all(objects(name, level))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("cpu", ["generic", "neoverse-v2"])
@pytest.mark.parametrize("name", MODULES)
def test_for_aarch64(name: str, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    processors.aarch64(monkeypatch, cpu)
    for code in objects(name, None):
        assert ELFFile(BytesIO(code))["e_machine"] == "EM_AARCH64"
