"""Entries: what passes from the compile side to the launch side, and what the launch side does with any other bytes."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import ptxemu
from ptxemu._runtime import ffi, lib
from ptxemu.cache import SUFFIX, Cache, key_of
from ptxemu.device.code import Facts, KernelCode
from ptxemu.device.entry import BYTES, HEAD, KERNEL, MODULE, Entry, opened, sealed
from ptxemu.device.module_entry import body_of, info_of
from ptxemu.driver import compile
from ptxemu.driver.describe import describe
from ptxemu.text.source import SourceFile, join
from tests.support import api_kernels as ptx

RICH = """
.version 8.0
.target sm_80, texmode_independent
.address_size 64
.global .align 8 .u64 pointer = generic(table) + 8;
.global .u32 table[3][4] = { {1, 2}, {3} };
.const .v2 .f32 pair = { 1.5, 2.5 };
.global .surfref faces[2] = { { width = 64, height = 32 }, {} };
.global .texref picture;
.global .samplerref how = { addr_mode_0 = clamp_to_border, filter_mode = linear };
.visible .entry empty() { ret; }
.visible .entry full(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 s[24], .param .texref t)
.reqntid 32, 2
.minnctapersm 2
{ ret; }
"""


def info(text: str):
    return describe(compile.front(text))


@pytest.fixture(scope="module")
def rich():
    return info(RICH)


@pytest.fixture(scope="module")
def code():
    facts = Facts("x16", 1, 2, 3, True, False, True, False)
    return KernelCode(b"\x7fELF" + bytes(range(256)), "kernel", True, facts, "0.46")


# ---------------------------------------------------------------- what comes back


@pytest.mark.parametrize("text", [RICH, ptx.VARIABLES, ptx.SURFACES, ptx.STRUCT, ptx.BOUNDED])
def test_facts_of_a_module_come_back(text):
    entry = opened("a", MODULE, sealed("a", MODULE, body_of(info(text))))
    assert entry is not None
    assert info_of(entry) == info(text)


def test_code_comes_back(code):
    assert KernelCode.from_entry(opened("a", KERNEL, sealed("a", KERNEL, code.body))) == code


def test_bytes_come_back():
    for data in (b"", b"x", bytes(range(256)) * 99):
        entry = opened("a", BYTES, sealed("a", BYTES, data))
        assert entry is not None and entry.bytes == data


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 121, 127, 128, 1000, 100_003])
def test_digest_is_sha256(size):
    data, digest = random.Random(size).randbytes(size), ffi.new("uint8_t[32]")
    lib.pe_entry_digest(b"key", data, size, digest)
    assert bytes(digest) == hashlib.sha256(b"key\0" + data).digest()


def test_keys_are_the_same_in_c():
    texts = ["kernel", "", "a" * 1000, "x16"]
    key, items = ffi.new("char[65]"), [ffi.new("char[]", text.encode()) for text in texts]
    lib.pe_key_of_texts(items, len(items), key)
    assert ffi.string(key).decode() == key_of(*texts)
    parts = ffi.new("pe_part[]", [(item, len(text)) for item, text in zip(items, texts, strict=True)])
    lib.pe_key_of(parts, len(parts), key)
    assert ffi.string(key).decode() == key_of(*texts)


# ---------------------------------------------------------------- what is refused


def test_another_kind_is_refused(rich, code):
    bodies = {MODULE: body_of(rich), KERNEL: code.body, BYTES: b"x"}
    for kind, body in bodies.items():
        assert [opened("a", other, sealed("a", kind, body)) is not None for other in bodies] == [
            other == kind for other in bodies
        ]


def test_another_version_is_refused(code):
    data = sealed("a", KERNEL, code.body)[:-32]
    older = data[:7] + bytes([data[7] - 1]) + data[8:]
    assert opened("a", KERNEL, older + hashlib.sha256(b"a\0" + older).digest()) is None


@pytest.mark.parametrize("kind", [MODULE, KERNEL])
def test_records_of_any_numbers_are_refused_or_harmless(rich, code, kind):
    """Words that are changed under a right checksum. What is accepted can be read and made resident."""
    body, random_ = (body_of(rich) if kind == MODULE else code.body), random.Random(3)
    device = ptxemu.Device(memory="1 MiB")
    values = (0, 1, 2, 3, 7, 8, 63, 64, 255, 2**31, 2**32 - 1, 2**32 - 8)
    accepted = 0
    for _ in range(3000):
        data = bytearray(body)
        for _ in range(random_.choice((1, 1, 1, 3))):
            at = random_.randrange(len(data) // 4) * 4
            data[at : at + 4] = random_.choice((*values, random_.randrange(2**32))).to_bytes(4, "little")
        entry = opened("a", kind, sealed("a", kind, bytes(data)))
        if entry is None:
            continue
        accepted += 1
        if kind == KERNEL:
            KernelCode.from_entry(entry)
        else:
            use(entry, device)
    assert accepted > 100


def test_more_handles_than_a_table_has_are_refused(rich):
    faces = replace(rich.handles["faces"], count=2**31)
    entry = opened("a", MODULE, sealed("a", MODULE, body_of(replace(rich, handles={"faces": faces}))))
    assert entry is not None
    made, problem = ffi.new("pe_module **"), ffi.new("char **")
    device = ptxemu.Device(memory="1 MiB")
    assert lib.pe_module_create(device.native(), entry.pointer, b"m", made, problem) == errno.ENOMEM
    assert ffi.string(problem[0]) == b"the handle table is full"


def use(entry: Entry, device: ptxemu.Device) -> None:
    """Everything that the launch side does with the facts of a module."""
    made, problem = ffi.new("pe_module **"), ffi.new("char **")
    if lib.pe_module_create(device.native(), entry.pointer, b"m", made, problem):
        assert ffi.string(problem[0])
        return
    for name in (b"full", b"pointer", b"faces", b"none"):
        lib.pe_module_kernel(made[0], name), lib.pe_module_variable(made[0], name), lib.pe_module_handle(made[0], name)
    file, line = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    for pos in (0, 100, 2**32 - 1):
        lib.pe_module_locate(made[0], pos, file, line)
    lib.pe_module_release(made[0])


# ---------------------------------------------------------------- modules


def test_memory_and_handles_are_given_back():
    device = ptxemu.Device(memory="8 MiB")
    used = device.arena.used
    for _ in range(3000):
        module = module_of_cached(device)
        lib.pe_module_release(module)
    assert device.arena.used == used
    assert lib.pe_arena_allocations(device.arena.handle) == 0


_entries: list[Entry] = []


def module_of_cached(device: ptxemu.Device):
    if not _entries:
        entry = opened("a", MODULE, sealed("a", MODULE, body_of(info(RICH))))
        assert entry is not None
        _entries.append(entry)
    made, problem = ffi.new("pe_module **"), ffi.new("char **")
    assert lib.pe_module_create(device.native(), _entries[0].pointer, b"m", made, problem) == 0
    return made[0]


def test_every_position_has_its_file_and_line():
    first, second = SourceFile("a", RICH), SourceFile("b", ptx.VARIABLES + "// ä\U0001f600\n\n")
    one, two = (info(part.text) for part in (first, second))
    joined = join([first, second])
    device = ptxemu.Device(memory="1 MiB")
    shifted = memoryview(two.texts[0].lines).cast("I")
    lines = b"".join((line + len(first.text)).to_bytes(4, "little") for line in shifted)
    both = replace(one, texts=(*one.texts, type(one.texts[0])(len(first.text), lines)))
    entry = opened("a", MODULE, sealed("a", MODULE, body_of(both)))
    made, problem = ffi.new("pe_module **"), ffi.new("char **")
    assert entry is not None and lib.pe_module_create(device.native(), entry.pointer, b"m", made, problem) == 0
    file, line = ffi.new("uint32_t *"), ffi.new("uint32_t *")
    for pos in range(len(joined.text)):
        assert lib.pe_module_locate(made[0], pos, file, line) == 0
        where = joined.location(pos)
        assert ("ab"[file[0]], line[0]) == (where.file, where.line)
    lib.pe_module_release(made[0])


def test_a_sampler_without_a_meaning_is_not_supported():
    text = RICH.replace("clamp_to_border", "clamp_ogl")
    with pytest.raises(ptxemu.UnsupportedError, match="clamp_ogl"):
        ptxemu.loads(text, device=ptxemu.Device(memory="1 MiB")).get_global("table")


# ---------------------------------------------------------------- the cache, read by C


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


KEY = key_of("x")


def read(directory: Path, key: str = KEY, kind: int = BYTES) -> int:
    cache = lib.pe_cache_open(os.fsencode(directory))
    if not cache:
        return -1
    entry = ffi.new("pe_entry **")
    error = lib.pe_cache_read(cache, key.encode(), kind, entry)
    lib.pe_entry_release(entry[0])
    lib.pe_cache_close(cache)
    return int(error)


def test_c_reads_what_python_writes(folder):
    Cache(folder).put(KEY, BYTES, b"data")
    assert [read(folder), read(folder, kind=KERNEL), read(folder, key_of("y"))] == [0, os_error("ENOEXEC"), os_error("ENOENT")]
    assert read(folder, "../" + KEY[3:]) == os_error("ENOENT")


def os_error(name: str) -> int:
    return int(getattr(errno, name))


def test_use_is_noted_for_the_eviction(folder):
    Cache(folder).put(KEY, BYTES, b"data")
    (path,) = folder.glob(f"*{SUFFIX}")
    os.utime(path, (1, 1))
    assert read(folder) == 0
    assert path.stat().st_mtime > 1


def test_directories_that_python_does_not_trust_c_does_not_either(folder):
    below = folder / "below"
    below.mkdir(mode=0o700)
    assert read(below) == os_error("ENOENT")
    for mode, trusted in ((0o777, False), (0o1777, True), (0o700, True)):
        folder.chmod(mode)
        assert (read(below) != -1) == trusted == (Cache(below).directory is not None)
    below.chmod(0o770)
    assert read(below) == -1 and Cache(below).directory is None
    assert read(folder / "none") == -1


def test_a_link_or_a_folder_in_place_of_an_entry_is_a_miss(folder):
    Cache(folder).put(KEY, BYTES, b"data")
    (path,) = folder.glob(f"*{SUFFIX}")
    path.rename(folder / "elsewhere")
    path.symlink_to(folder / "elsewhere")
    assert read(folder) == os_error("ENOENT")
    path.unlink()
    path.mkdir()
    assert read(folder) == os_error("ENOEXEC")


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"PTXEMU_CACHE": "{}"}, ""),
        ({"PTXEMU_CACHE": "", "XDG_CACHE_HOME": "{}"}, "ptxemu"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "{}"}, ".cache/ptxemu"),
        ({"PTXEMU_CACHE": "Off", "HOME": "{}"}, None),
    ],
)
def test_the_users_directory(folder, variables, place, monkeypatch):
    for name in ("PTXEMU_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(folder))
    assert Cache.place() == (None if place is None else folder / place)
    if place is not None:
        Cache(folder / place).put(KEY, BYTES, b"data")
    library = Path(sys.modules["ptxemu._runtime"].__file__).with_name("libptxemu.so")
    program = f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
library.pe_cache_open.restype = ctypes.c_void_p
cache = library.pe_cache_open(None)
entry = ctypes.c_void_p()
print(-1 if not cache else library.pe_cache_read(ctypes.c_void_p(cache), {KEY.encode()!r}, {BYTES}, ctypes.byref(entry)))
"""
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == (-1 if place is None else 0)


def test_layout_is_what_the_header_says():
    assert HEAD.size == ffi.offsetof("pe_entry_head", "section")
    assert ctypes.sizeof(ctypes.c_void_p) == 8
