"""Lines of the files that a program says it was made of."""

from __future__ import annotations

from pathlib import Path

from ptxemu.text.errors import InputError
from ptxemu.text.files import read_file, regular
from ptxemu.text.source import Location

SUFFIXES = frozenset((
    ".cu", ".cuh", ".h", ".hpp", ".hxx", ".hh", ".cpp", ".cxx", ".cc", ".c", ".inc", ".inl", ".ipp", ".py", ".jl", ".rs",
    ".f90", ".cuf", ".mojo",
))  # fmt: skip
MAX_FILE = 16 << 20


class Listings:
    """Reads files once. Whoever wrote the program has chosen their names: so only what is called as sources are is read, and
    only regular files. One that is not where it was is looked for in ``folder``, that of the program.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._files: dict[str, list[str]] = {}

    def line(self, location: Location) -> str | None:
        """The text of a line; None if it cannot be read."""
        lines = self.lines(location.file)
        return lines[location.line - 1] if 0 < location.line <= len(lines) else None

    def lines(self, name: str) -> list[str]:
        """All lines of a file; none if it cannot be read."""
        if name not in self._files:
            self._files[name] = self._read(name)
        return self._files[name]

    def _read(self, name: str) -> list[str]:
        path = Path(name)
        if path.suffix.lower() not in SUFFIXES:
            return []
        for candidate in [path] if self.folder is None else [path, self.folder / path.name]:
            try:
                data = read_file(regular(candidate, ""), MAX_FILE)
            except InputError:
                continue
            return data.decode("utf-8", "replace").splitlines()
        return []
