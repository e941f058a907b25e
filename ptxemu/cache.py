"""The disk cache: entries (:mod:`ptxemu.device.entry`) in a private directory, found by the hash of everything they depend on.

A file that is torn, flipped, foreign or another key's is a miss, never an error: the caller makes the entry again.
"""

from __future__ import annotations

import hashlib
import os
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from ptxemu._runtime import ffi, lib
from ptxemu.device.entry import Entry, opened, sealed
from ptxemu.process.private import private_directory

SUFFIX = ".entry"
UNFINISHED = ".new-"
WRITTEN = ".written"
"""A file with a byte for each KiB that processes have written since one of them searched the directory for what to evict."""
SEARCH_AFTER = 1 / 64
"""How much of the limit is written between two searches."""
ABANDONED = 3600  # seconds; a file that is written so long is not written any more
FIRST_TIME = 400_000_000  # in 1982: archives without times say 1970 or 1980
DEFAULT_LIMIT = 512 << 20
VARIABLE = "PTXEMU_CACHE"
LIMIT_VARIABLE = "PTXEMU_CACHE_LIMIT"


def key_of(*parts: object) -> str:
    """The hash of ``parts``; each is hashed with its length, so no two lists of parts run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


@cache
def machine_identity() -> str:
    """What tells this machine's CPU from those that cannot run its code."""
    return str(ffi.string(lib.pe_machine_identity()).decode())


@cache
def build_fingerprint() -> str:
    """The hash of what tells ptxemu's own code from other versions of it: an entry made by other code is never used.

    Sizes and times of the files do, which takes a tenth of the time of reading them, unless an archive has lost the times.
    """
    root = os.path.dirname(os.path.realpath(__file__))
    return key_of(*(f"{path[len(root) :]}:{facts!r}" for path, facts in sorted(_sources(root))))


def _sources(folder: str) -> Iterator[tuple[str, tuple[int, int] | bytes]]:
    """Each file, and what tells it from others."""
    with os.scandir(folder) as found:
        for item in found:
            if item.name.endswith(".py") or item.name.startswith("_runtime"):
                status = item.stat()
                dated = status.st_mtime > FIRST_TIME
                yield item.path, (status.st_size, status.st_mtime_ns) if dated else Path(item.path).read_bytes()
            elif item.name != "__pycache__" and item.is_dir(follow_symlinks=False):
                yield from _sources(item.path)


class Cache:
    """A directory of entries; with no directory, a cache that is always empty."""

    def __init__(self, directory: Path | None, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = None if directory is None else private_directory(directory)
        self.limit = limit

    @classmethod
    def from_environment(cls) -> Cache:
        """The user's cache: ``PTXEMU_CACHE`` is its directory or ``off``, ``PTXEMU_CACHE_LIMIT`` its size in MiB."""
        limit = os.environ.get(LIMIT_VARIABLE, "")
        return cls(cls.place(), int(limit) << 20 if limit.isdigit() else DEFAULT_LIMIT)

    @staticmethod
    def place() -> Path | None:
        """Where the user wants the cache, which may not be private; None if nowhere."""
        place = os.environ.get(VARIABLE, "")
        if place.lower() in ("off", "0", "none"):
            return None
        return Path(place) if place else _default_directory()

    def contents(self) -> tuple[int, int]:
        """How many entries there are, and their bytes."""
        if self.directory is None:
            return 0, 0
        with os.scandir(self.directory) as found:
            sizes = [status.st_size for status, _ in _present(found)]
        return len(sizes), sum(sizes)

    def get(self, key: str, kind: int) -> Entry | None:
        """The entry of ``key`` if it is of the kind, or None."""
        if self.directory is None:
            return None
        path = self._path(key)
        try:
            entry = opened(key, kind, path.read_bytes())
            if entry is not None:
                os.utime(path)  # the order of eviction is the order of use
        except OSError:
            return None
        return entry

    def put(self, key: str, kind: int, body: bytes) -> None:
        """Store an entry; a full disk or a read-only directory only means that nothing is kept."""
        if self.directory is None:
            return
        data = sealed(key, kind, body)
        if len(data) > self.limit:
            return
        try:
            _write_atomically(self._path(key), data)
            if self._search_is_due(len(data)):
                self._evict()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        assert self.directory is not None
        return self.directory / (key + SUFFIX)

    def _search_is_due(self, size: int) -> bool:
        """Whether it is so with ``size`` more bytes. A search takes a few microseconds for each entry that there is."""
        assert self.directory is not None
        with open(self.directory / WRITTEN, "ab", buffering=0, opener=partial(os.open, mode=0o600)) as file:
            file.write(b"." * -(-size >> 10))
            due = file.tell() << 10 > self.limit * SEARCH_AFTER
            if due:
                file.truncate(0)
        return due

    def _evict(self) -> None:
        assert self.directory is not None
        with os.scandir(self.directory) as found:
            files = list(_present(found))
        total = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            abandoned = os.path.basename(path).startswith(UNFINISHED) and status.st_mtime < time.time() - ABANDONED
            if total > self.limit or abandoned:
                with suppress(FileNotFoundError):  # others evict too
                    os.unlink(path)
                total -= status.st_size


def _default_directory() -> Path:
    """The same as in ``csrc/host/cache.c``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return Path(base if os.path.isabs(base) else os.path.expanduser("~/.cache"), "ptxemu")


def _present(found: Iterable[os.DirEntry[str]]) -> Iterator[tuple[os.stat_result, str]]:
    """The cache's files, but those that vanish meanwhile."""
    for item in found:
        if item.name.endswith(SUFFIX) or item.name.startswith(UNFINISHED):
            with suppress(FileNotFoundError):
                yield item.stat(), item.path


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.parent / (UNFINISHED + os.urandom(16).hex())
    try:
        with open(temporary, "xb", opener=partial(os.open, mode=0o600)) as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
