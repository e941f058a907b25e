"""The disk cache: keys, checks, privacy, eviction; and what a warm start does not do."""

from __future__ import annotations

import os
import platform
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu import cache
from ptxemu.cache import Cache, key_of, machine_identity
from ptxemu.device.entry import BYTES, KERNEL, MODULE, opened, sealed
from ptxemu.driver import compile
from tests.support import api_kernels as ptx

BODY = b"what is kept"


def found(store: Cache, key: str) -> bytes | None:
    entry = store.get(key, BYTES)
    return None if entry is None else entry.bytes


def is_intact(path: Path) -> bool:
    """Whether a file of a cache holds facts of a module or code."""
    return any(opened(path.stem, kind, path.read_bytes()) for kind in (MODULE, KERNEL))


def entries(folder: Path) -> list[Path]:
    return list(folder.glob(f"*{cache.SUFFIX}"))


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_round_trip(store):
    assert found(store, "a") is None
    store.put("a", BYTES, BODY)
    assert found(store, "a") == BODY
    assert found(store, "b") is None


def test_keys_depend_on_every_part():
    keys = [key_of("ab", "c"), key_of("a", "bc"), key_of("abc"), key_of("ab", "c", ""), key_of(b"ab", "d"), key_of(1)]
    assert len(set(keys)) == len(keys)
    assert key_of("ab", "c") == keys[0]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these are features of x86")
def test_what_rr_records_is_on_the_same_machine():
    """It hides RDRAND, RDSEED, RTM and XSAVEOPT."""
    words = [int(word, 16) for word in machine_identity().split()[1:]]
    basic, extended, saving = words[1], words[3], words[10]
    assert not basic & 1 << 30 and not extended & (1 << 18 | 1 << 11) and not saving & 1


def test_every_flipped_bit_is_noticed():
    data = sealed("a", BYTES, BODY)
    assert opened("a", BYTES, data) is not None
    for position in range(len(data) * 8):
        broken = bytearray(data)
        broken[position // 8] ^= 1 << position % 8
        assert opened("a", BYTES, bytes(broken)) is None


def test_every_torn_file_is_noticed():
    data = sealed("a", BYTES, BODY)
    assert all(opened("a", BYTES, data[:size]) is None for size in range(len(data)))
    assert opened("a", BYTES, data + b"\0") is None


def test_entries_and_directory_are_private(store):
    store.put("a", BYTES, BODY)
    assert store.directory is not None
    assert stat.S_IMODE(store.directory.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in store.directory.iterdir())
    assert [path.name for path in entries(store.directory)] == ["a" + cache.SUFFIX]


def test_a_directory_that_others_may_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    store = Cache(tmp_path)
    store.put("a", BYTES, BODY)
    assert found(store, "a") is None
    assert list(tmp_path.iterdir()) == []


def test_the_least_recently_used_go_first(tmp_path):
    size = len(sealed("a", BYTES, BODY))
    store = Cache(tmp_path / "cache", limit=3 * size)
    for number, key in enumerate("abc"):
        store.put(key, BYTES, BODY)
        os.utime(store._path(key), (number, number))
    assert found(store, "a") == BODY
    store.put("d", BYTES, BODY)
    assert [found(store, key) is not None for key in "abcd"] == [True, False, True, True]


def test_searches_are_as_rare_as_if_one_process_wrote_all(tmp_path, monkeypatch):
    searches = []
    monkeypatch.setattr(Cache, "_evict", lambda self: searches.append(self))
    for number in range(100):  # each from a process of its own
        Cache(tmp_path / "cache", limit=64 << 20).put(str(number), BYTES, bytes(50_000))
    assert len(searches) == 4, "one after each MiB"


def test_what_is_larger_than_the_cache_is_not_kept(tmp_path):
    store = Cache(tmp_path / "cache", limit=10)
    store.put("a", BYTES, BODY)
    assert found(store, "a") is None


def test_a_place_that_cannot_be_used_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    store = Cache(tmp_path / "file" / "cache")
    store.put("a", BYTES, BODY)
    assert found(store, "a") is None


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
    for path in entries(folder):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    np.testing.assert_array_equal(run_saxpy(), np.full(64, 2.0))
    assert all(is_intact(path) for path in entries(folder))


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
    assert all(is_intact(path) for path in entries(tmp_path / "shared"))


def test_an_entry_of_another_key_is_a_miss(store):
    store.put("a", BYTES, BODY)
    store.put("b", BYTES, b"other")
    store._path("a").write_bytes(store._path("b").read_bytes())
    assert found(store, "a") is None
    assert found(store, "b") is not None


@pytest.mark.parametrize("kind", [MODULE, KERNEL, BYTES, 0, 77])
@pytest.mark.parametrize("body", [b"", b"x", bytes(272), b"\xff" * 272, bytes(100_000)])
def test_entries_of_any_content_are_misses(monkeypatch, tmp_path, kind, body):
    """Whole entries under the right keys, with contents that this version does not write."""
    folder = tmp_path / "odd"
    monkeypatch.setenv("PTXEMU_CACHE", str(folder))
    run_saxpy()
    for path in entries(folder):
        path.write_bytes(sealed(path.stem, kind, body))
    np.testing.assert_array_equal(run_saxpy(), np.full(64, 2.0))
    assert all(is_intact(path) for path in entries(folder))


def test_a_directory_below_one_that_others_may_write_is_not_used(tmp_path):
    parent = tmp_path / "parent"
    parent.mkdir()
    parent.chmod(0o777)
    assert Cache(parent / "cache").directory is None
    parent.chmod(0o1777)
    assert Cache(parent / "cache").directory == parent / "cache"


def test_links_are_followed_once(tmp_path):
    """What a link points to later does not matter."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Cache(tmp_path / "link" / "cache").directory == tmp_path / "real" / "cache"
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (tmp_path / "bad").symlink_to(open_to_all)
    assert Cache(tmp_path / "bad").directory is None
    assert Cache(tmp_path / "bad" / "cache").directory is None


@pytest.mark.skipif(os.geteuid() != 0, reason="gives directories away")
def test_a_directory_of_somebody_else_is_not_used(tmp_path):
    for path in (tmp_path / "theirs", tmp_path / "theirs" / "cache"):
        path.mkdir(mode=0o755)
    os.chown(tmp_path / "theirs", 12345, 12345)
    assert Cache(tmp_path / "theirs" / "cache").directory is None
    assert Cache(tmp_path / "theirs").directory is None


def test_parents_are_made_private_whatever_the_umask(tmp_path):
    old = os.umask(0)
    try:
        store = Cache(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert store.directory is not None
    assert [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", tmp_path / "a" / "b")] == [0o700, 0o700]


def test_abandoned_files_are_removed(store):
    store.put("a", BYTES, BODY)
    assert store.directory is not None
    old, new = (store.directory / f"{cache.UNFINISHED}{name}" for name in ("old", "new"))
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (1, 1))
    store._evict()
    assert (old.exists(), new.exists(), found(store, "a")) == (False, True, BODY)


def test_writers_may_evict_what_others_write(tmp_path):
    size = len(sealed("a", BYTES, BODY))
    stores = [Cache(tmp_path / "cache", limit=3 * size) for _ in range(4)]

    def fill(number: int) -> None:
        for index in range(100):
            stores[number].put(f"{number}-{index}", BYTES, BODY)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(4)))
    stores[0].put("last", BYTES, BODY)
    assert 1 <= len(entries(tmp_path / "cache")) <= 3
    assert found(stores[1], "last") == BODY


def test_the_fingerprint_follows_the_sources(monkeypatch, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    monkeypatch.setattr(cache, "__file__", str(package / "cache.py"))
    source = package / "a.py"

    def fingerprint(text: str, when: int) -> str:
        source.write_text(text)
        os.utime(source, (when, when))
        cache.build_fingerprint.cache_clear()
        return cache.build_fingerprint()

    try:
        recent = 1_700_000_000
        first = fingerprint("one", recent)
        assert fingerprint("one", recent) == first
        assert fingerprint("one", recent + 1) != first
        assert fingerprint("three", recent) != first
        assert fingerprint("one", 0) != fingerprint("two", 0), "without times the contents count"
    finally:
        cache.build_fingerprint.cache_clear()
