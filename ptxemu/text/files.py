"""Files that users and case files name: reading is bounded, and whatever is wrong with a file is an InputError."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from ptxemu.text.errors import InputError, shown

LONGEST_NAME = 300  # characters of a path in messages
MAX_PROGRAM = 256 << 20  # bytes of a program's text


def read_file(path: Path, limit: int, where: str = "") -> bytes:
    """The contents of a file of up to ``limit`` bytes; errors begin with ``where`` and name the file."""
    try:
        with path.open("rb") as file:
            return read_bounded(file, limit, named(path, where))
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path, where)}: {reason(error).lower()}") from None


def read_text(path: Path, limit: int, where: str = "") -> str:
    """The text in a file of up to ``limit`` bytes."""
    try:
        return read_file(path, limit, where).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{named(path, where)}: not UTF-8 text") from None


def decoded(data: bytes, name: str) -> str:
    """Decode a program. Raises InputError if it is not UTF-8."""
    try:
        return data.removesuffix(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: not valid UTF-8 (byte {error.start})") from None


def write_text(path: Path, text: str) -> None:
    """Write a file of UTF-8 text; what is not Unicode, such as a part of a file's name, becomes an escape."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file."""
    try:
        path.write_bytes(data)
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path, '')}: {reason(error)}") from None


def make_folder(path: Path | str) -> None:
    """Make a folder, and those that it lies in, where there is none."""
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path, '')}: {reason(error)}") from None


def read_bounded(file: BinaryIO, limit: int, name: str) -> bytes:
    """All that a file or a pipe still has; InputError, beginning with ``name``, if that is more than ``limit`` bytes."""
    data = file.read(limit + 1)
    if len(data) > limit:
        raise InputError(f"{name}: is larger than {limit >> 20} MiB")
    return data


def named(path: Path | str, where: str) -> str:
    """What messages call a file."""
    name = str(path) if len(str(path)) <= LONGEST_NAME else f"...{str(path)[-LONGEST_NAME:]}"
    return f"{where}: {name}" if where else name


def reason(error: OSError | ValueError) -> str:
    """Why a file cannot be used: what the system says, or what Python says of a name that no file can have."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def unreadable(error: OSError | ValueError) -> str:
    """Why a file cannot be read."""
    return "no such file" if isinstance(error, FileNotFoundError) else reason(error)


def regular(path: Path, where: str) -> Path:
    """``path``, if it is a regular file: reading one ends, which it need not with a device or a pipe."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise InputError(f"{named(path, where)}: {unreadable(error)}") from None
    if not stat.S_ISREG(mode):
        raise InputError(f"{named(path, where)}: is a {'folder' if stat.S_ISDIR(mode) else 'device or a pipe'}, not a file")
    return path


def inside(folder: Path, name: str, where: str) -> Path:
    """The path of ``name`` below a folder; InputError if it leaves the folder, be it through ``..`` or a symbolic link."""
    try:
        path = (folder / name).resolve()
        if path.is_relative_to(folder.resolve()) and path != folder.resolve():
            return folder / name
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links that refer to each other
        raise InputError(f"{where}: {shown(name)}: {error}") from None
    raise InputError(f"{where}: {shown(name)} does not lie below the folder for results, {folder}")
