"""Directories whose contents no other user can change, by the rules that ssh has for its files."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ptxemu.process.locks import importing

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def private_directory(directory: Path) -> Path | None:
    """Make a directory that only its owner may enter, and its parents; its path without symbolic links.

    None where it cannot be made, or where others may change what the path stands for: the directory is somebody else's or
    writable for others, or a parent is and is not sticky.
    """
    try:
        resolved = Path(os.path.realpath(directory))
        _make(resolved)
        found = [os.lstat(path) for path in (resolved, *resolved.parents)]
    except (OSError, ValueError):
        return None
    own, *parents = found
    trusted = own.st_uid == os.geteuid() and not own.st_mode & OTHERS_WRITE and all(map(_is_safe, parents))
    return resolved if trusted and stat.S_ISDIR(own.st_mode) else None


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
