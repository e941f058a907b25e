"""The disk cache: keys, checks, privacy, eviction; and what a warm start does not do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import api_kernels as ptx
import numpy as np
import pytest

import ptxemu
from ptxemu import cache, compile
from ptxemu.cache import Cache, Entry, decode, encode, key_of

ENTRY = Entry({"symbol": "kernel", "size": 3}, b"object code")


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_round_trip(store):
    assert store.get("a") is None
    store.put("a", ENTRY)
    assert store.get("a") == ENTRY
    assert store.get("b") is None


def test_keys_depend_on_every_part():
    keys = [key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "c", ""), key_of(b"ab", "d"), key_of(1)]
    assert len(set(keys)) == len(keys)
    assert key_of("ab", "c") == keys[0]


def test_every_flipped_bit_is_noticed():
    data = encode(ENTRY)
    assert decode(data) == ENTRY
    for position in range(len(data) * 8):
        broken = bytearray(data)
        broken[position // 8] ^= 1 << position % 8
        assert decode(bytes(broken)) is None


def test_every_torn_file_is_noticed():
    data = encode(ENTRY)
    assert all(decode(data[:size]) is None for size in range(len(data)))
    assert decode(data + b"\0") is None


def test_entries_and_directory_are_private(store):
    store.put("a", ENTRY)
    assert store.directory is not None
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in store.directory.iterdir())
    assert [path.name for path in store.directory.iterdir()] == ["a" + cache.SUFFIX]


def test_a_directory_that_others_may_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    store = Cache(tmp_path)
    store.put("a", ENTRY)
    assert store.get("a") is None
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path):
    size = len(encode(ENTRY))
    store = Cache(tmp_path / "cache", limit=3 * size)
    for number, key in enumerate("abc"):
        store.put(key, ENTRY)
        os.utime(store._path(key), (number, number))
    assert store.get("a") == ENTRY
    store.put("d", ENTRY)
    assert [store.get(key) is not None for key in "abcd"] == [True, False, True, True]


def test_what_is_larger_than_the_cache_is_not_kept(tmp_path):
    store = Cache(tmp_path / "cache", limit=10)
    store.put("a", ENTRY)
    assert store.get("a") is None


def test_a_place_that_cannot_be_used_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = Cache(tmp_path / "file" / "cache")
    store.put("a", ENTRY)
    assert store.get("a") is None


@pytest.mark.parametrize("value", ["off", "OFF", "0", "none"])
def test_it_can_be_switched_off(monkeypatch, value):
    monkeypatch.setenv("PTXEMU_CACHE", value)
    assert Cache.from_environment().directory is None


def test_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "here"))
    monkeypatch.setenv("PTXEMU_CACHE_LIMIT", "2")
    store = Cache.from_environment()
    assert (store.directory, store.limit) == (tmp_path / "here", 2 << 20)
    monkeypatch.delenv("PTXEMU_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Cache.from_environment().directory == tmp_path / "xdg" / "ptxemu"


def run_saxpy() -> np.ndarray:
    y = np.zeros(64, np.float32)
    ptxemu.loads(ptx.SAXPY)["saxpy"][2, 32](64, 2.0, np.ones(64, np.float32), y)
    return y


def test_a_warm_start_neither_parses_nor_compiles(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "warm"))
    run_saxpy()

    def fail(*arguments: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(compile, "front", fail)
    monkeypatch.setattr(compile, "kernel", fail)
    np.testing.assert_array_equal(run_saxpy(), np.full(64, 2.0))


def test_damaged_entries_are_made_again(monkeypatch, tmp_path):
    folder = tmp_path / "damaged"
    monkeypatch.setenv("PTXEMU_CACHE", str(folder))
    run_saxpy()
    for path in folder.iterdir():
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    np.testing.assert_array_equal(run_saxpy(), np.full(64, 2.0))
    assert all(decode(path.read_bytes()) is not None for path in folder.iterdir())


def test_all_facts_of_a_module_survive(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "facts"))
    for text in (ptx.VARIABLES, ptx.SURFACES, ptx.STRUCT, ptx.BOUNDED):
        fresh, warm = ptxemu.loads(text).info, ptxemu.loads(text).info
        assert fresh == warm
        assert fresh is not warm


def test_processes_may_share_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PTXEMU_CACHE", str(tmp_path / "shared"))
    code = f"""
import numpy as np, ptxemu
y = np.zeros(64, np.float32)
ptxemu.loads({ptx.SAXPY!r})["saxpy"][2, 32](64, 2.0, np.ones(64, np.float32), y)
assert (y == 2).all()
"""
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert all(decode(path.read_bytes()) is not None for path in (tmp_path / "shared").iterdir())
