"""The disk cache: small checked files in a private directory, found by the hash of everything they depend on.

An entry is ``MAGIC``, the length of a JSON header, the header, a payload and the SHA-256 of all that.  A file that is
torn, flipped or foreign is a miss, never an error: the caller makes the entry again.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MAGIC = b"PTXEMU\x00\x01"
DIGEST_BYTES = 32
SUFFIX = ".entry"
DEFAULT_LIMIT = 512 << 20
VARIABLE = "PTXEMU_CACHE"
LIMIT_VARIABLE = "PTXEMU_CACHE_LIMIT"


@dataclass(frozen=True, slots=True)
class Entry:
    """What one cache file holds: ``header`` is JSON data, ``payload`` bytes."""

    header: dict[str, Any]
    payload: bytes


def key_of(*parts: object) -> str:
    """The hash of ``parts``; each is hashed with its length, so no two lists of parts run into each other."""
    digest = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
        digest.update(struct.pack("<Q", len(data)))
        digest.update(data)
    return digest.hexdigest()


@cache
def build_fingerprint() -> str:
    """The hash of ptxemu's own code: an entry made by other code is never used."""
    root = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.glob("_runtime*")]):
        digest.update(str(path.relative_to(root)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def encode(entry: Entry) -> bytes:
    """The bytes of a cache file."""
    header = json.dumps(entry.header, separators=(",", ":")).encode()
    body = MAGIC + struct.pack("<I", len(header)) + header + entry.payload
    return body + hashlib.sha256(body).digest()


def decode(data: bytes) -> Entry | None:
    """The entry in the bytes of a cache file, or None where they are damaged."""
    start = len(MAGIC) + 4
    if len(data) < start + DIGEST_BYTES or not data.startswith(MAGIC):
        return None
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if hashlib.sha256(body).digest() != digest:
        return None
    (length,) = struct.unpack_from("<I", body, len(MAGIC))
    return Entry(json.loads(body[start : start + length]), body[start + length :])


class Cache:
    """A directory of entries; with no directory, a cache that is always empty."""

    def __init__(self, directory: Path | None, limit: int = DEFAULT_LIMIT) -> None:
        self.directory = directory if directory is not None and _private(directory) else None
        self.limit = limit

    @classmethod
    def from_environment(cls) -> Cache:
        """The user's cache: ``PTXEMU_CACHE`` is its directory or ``off``, ``PTXEMU_CACHE_LIMIT`` its size in MiB."""
        place = os.environ.get(VARIABLE, "")
        if place.lower() in ("off", "0", "none"):
            return cls(None)
        limit = os.environ.get(LIMIT_VARIABLE, "")
        size = int(limit) << 20 if limit.isdigit() else DEFAULT_LIMIT
        return cls(Path(place) if place else _default_directory(), size)

    def get(self, key: str) -> Entry | None:
        """The entry of ``key``, or None."""
        if self.directory is None:
            return None
        path = self._path(key)
        try:
            entry = decode(path.read_bytes())
            if entry is not None:
                os.utime(path)  # the order of eviction is the order of use
        except OSError:
            return None
        return entry

    def put(self, key: str, entry: Entry) -> None:
        """Store ``entry``; a full disk or a read-only directory only means that nothing is kept."""
        if self.directory is None:
            return
        data = encode(entry)
        if len(data) > self.limit:
            return
        try:
            _write_atomically(self._path(key), data)
            self._evict()
        except OSError:
            return

    def _path(self, key: str) -> Path:
        assert self.directory is not None
        return self.directory / (key + SUFFIX)

    def _evict(self) -> None:
        assert self.directory is not None
        with os.scandir(self.directory) as found:
            files = [(item.stat(), item.path) for item in found if item.name.endswith(SUFFIX)]
        total = sum(status.st_size for status, _ in files)
        for status, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if total <= self.limit:
                return
            os.unlink(path)
            total -= status.st_size


def _default_directory() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("ptxemu", appauthor=False))


def _private(directory: Path) -> bool:
    """Make the directory; False if others could put code into it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _write_atomically(path: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
