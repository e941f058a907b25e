"""Directories whose contents no other user can change, by the rules that ssh has for its files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ptxemu.process.locks import importing

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_directory(directory: Path) -> Path | None:
    """Make a directory that only its owner may enter, and its parents; its path without symbolic links.

    None where there is an objection.
    """
    resolved, wrong = _made(directory)
    return None if wrong else resolved


def objection(directory: Path) -> str:
    """Why a directory, which is made if need be, is not private; nothing if it is.

    It cannot be made, or others may change what the path stands for: the directory is somebody else's or writable for others,
    or a parent is and is not sticky.
    """
    return _made(directory)[1]


def _made(directory: Path) -> tuple[Path, str]:
    """A directory without symbolic links, looked at once, and the objection to it."""
    try:
        resolved = Path(os.path.realpath(directory))
        _make(resolved)
        found = [os.lstat(path) for path in (resolved, *resolved.parents)]
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        return directory, f"{directory} cannot be made: {reason}"
    return resolved, _objection_to(resolved, *found)


def _objection_to(resolved: Path, own: os.stat_result, *parents: os.stat_result) -> str:
    if not stat.S_ISDIR(own.st_mode):
        return f"{resolved} is not a folder"
    if own.st_uid != os.geteuid():
        return f"{resolved} belongs to another user"
    if own.st_mode & OTHERS_WRITE:
        return f"{resolved} can be written by others (mode {stat.S_IMODE(own.st_mode):o}; try chmod go-w)"
    unsafe = next((path for path, found in zip(resolved.parents, parents, strict=True) if not _is_safe(found)), None)
    return f"{unsafe}, above {resolved}, can be changed by others" if unsafe else ""


def _make(directory: Path) -> None:
    for path in reversed((directory, *directory.parents)):
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)


def _is_safe(parent: os.stat_result) -> bool:
    """Whether only the user and root can rename what lies in a directory."""
    if parent.st_uid not in (0, os.geteuid()):
        return False
    allowed = stat.S_IWGRP if _is_own_group(parent.st_gid) else 0
    return bool(parent.st_mode & stat.S_ISVTX) or not parent.st_mode & OTHERS_WRITE & ~allowed


def _is_own_group(group: int) -> bool:
    """Whether a group has no other member than the user: many systems give each user such a group."""
    with importing:
        import grp
        import pwd

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return members.gr_name == user.pw_name and user.pw_gid == group and set(members.gr_mem) <= {user.pw_name}
