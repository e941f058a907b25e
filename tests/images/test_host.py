"""PTX in files of programs: as nvcc writes them, and damaged in every byte of what leads to it."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.cli import run
from ptxemu.images.fatbin import ENTRY, HEADER, MAGIC, text_of
from ptxemu.images.host import program_text
from ptxemu.text.errors import InputError, UnsupportedError
from tests.support.places import FATBIN

CUBIN = 190
X86_64 = 62


def fat(kind: str = "plain") -> bytes:
    return (FATBIN / f"add_{kind}.fatbin").read_bytes()


def elf(*sections: tuple[bytes, bytes], machine: int = X86_64) -> bytes:
    """An ELF file with these sections (System V ABI, "Object files")."""
    names = b"\0" + b"".join(name + b"\0" for name, _ in sections) + b".shstrtab\0"
    contents = [*(data for _, data in sections), names]
    at, headers = 64, [bytes(64)]
    for name, data in zip([*(name for name, _ in sections), b".shstrtab"], contents):
        headers.append(struct.pack("<IIQQQQIIQQ", names.index(b"\0" + name + b"\0") + 1, 1, 2, 0, at, len(data), 0, 0, 8, 0))
        at += len(data)
    last = len(headers) - 1
    numbers = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, at, 0, 64, 0, 0, 64, len(headers), last)
    head = b"\x7fELF\2\1\1" + bytes(9) + numbers
    return head + b"".join(contents) + b"".join(headers)


def test_an_object_of_the_host_gives_the_ptx_of_the_newest_architecture() -> None:
    data = elf((b".text", b"code"), (b".nv_fatbin", fat("zstd") + bytes(24)), (b".nvFatBinSegment", bytes(24)))
    assert program_text(data, "a.o") == program_text(fat(), "a.fatbin") == text_of(fat(), 90)


def test_modules_with_machine_code_alone_stand_beside_it() -> None:
    """As those of the device runtime, which nvlink adds."""
    code = ENTRY.pack(2, 0x101, ENTRY.size, 8, 0, 0, 0, 80, 0, 0, 0, 0, 0) + bytes(8)
    machine = HEADER.pack(MAGIC, 1, HEADER.size, len(code)) + code
    assert program_text(elf((b".nv_fatbin", machine + fat() + bytes(8) + machine)), "a") == text_of(fat(), 90)
    with pytest.raises(UnsupportedError, match=r"a: the fat binary holds no PTX, only machine code for sm_80"):
        program_text(elf((b".nv_fatbin", machine)), "a")


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (elf((b".nv_fatbin", fat() + fat())), InputError, "a: has several modules: cuobjdump -xptx all"),
        (elf((b".text", b"code")), InputError, "a: is a program, a library or an object without CUDA code"),
        (elf((b".nv.info", b"code"), machine=CUBIN), UnsupportedError, "a: is machine code .a cubin., which holds no PTX"),
        (elf()[:40], InputError, "a: is an ELF file that is cut off"),
        (elf()[:70], InputError, "a: is an ELF file that is damaged"),
        (b"\x7fELF\1" + elf()[5:], InputError, "a: is no 64-bit program"),
        (fat()[:100], InputError, "a: the fat binary is damaged"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        program_text(data, "a")


def test_damage_is_an_error_or_none() -> None:
    whole, source = elf((b".text", bytes(8)), (b".nv_fatbin", fat())), random.Random(3)
    for _ in range(2000):
        data = bytearray(whole)
        for _ in range(source.randint(1, 3)):
            near = source.choice([range(64), range(len(data) - 256, len(data)), range(72, 200)])
            data[source.choice(near)] = source.randrange(256)
        with suppress(InputError, UnsupportedError):
            program_text(bytes(data[: source.choice([len(data), source.randrange(len(data))])]), "a")


def added(path: Path) -> np.ndarray:
    """What the kernel of the file makes of numbers and their squares."""
    result = np.zeros(64, "f4")
    ptxemu.load(path)["add"][2, 32](np.arange(64, dtype="f4"), np.arange(64, dtype="f4") ** 2, result, 64)
    return result


EXPECTED = np.arange(64, dtype="f4") + np.arange(64, dtype="f4") ** 2


def test_kernels_run_from_files_of_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in [("add.fatbin", fat("zstd")), ("add.o", elf((b".nv_fatbin", fat())))]:
        (tmp_path / name).write_bytes(data)
        np.testing.assert_array_equal(added(tmp_path / name), EXPECTED)
        assert run(["info", str(tmp_path / name)]) == 0
        assert capsys.readouterr().out.startswith(f"{tmp_path / name}: PTX 9.0 for sm_90, 1 kernel(s)\n")


def test_the_command_line_names_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "add.cubin").write_bytes(elf(machine=CUBIN))
    assert run(["info", str(tmp_path / "add.cubin")]) == 3
    assert capsys.readouterr().err.startswith(f"ptxemu: error: {tmp_path / 'add.cubin'}: is machine code (a cubin)")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_what_nvcc_makes_for_the_host(tmp_path: Path) -> None:
    (tmp_path / "add.cu").write_text((FATBIN / "add.cu").read_text())
    subprocess.run(["nvcc", "-c", "add.cu"], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(added(tmp_path / "add.o"), EXPECTED)
