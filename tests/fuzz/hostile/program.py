"""What a hostile program is: a text, and the launches of its kernels, as plain data that a file can hold.

Values are integers or texts such as ``out.end-4`` and ``host+0x10``: a place of the process that runs the program (see
:mod:`hostile.world`), and what is added to it.  A column of values goes round: lane ``i`` has ``column[i % len(column)]``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

Value = int | str
Extent = tuple[int, int, int]
HEAD = "// hostile: "


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of a kernel, or of each where no name is given.

    Parameter ``i`` is ``arguments[i]``, a value or, for structs, a column of 8-byte ones; scalars of fewer bits take
    ``numbers`` in turn.  Both go round.  ``data`` are the columns that fill the buffer of that name.
    """

    kernel: str
    grid: Extent = (1, 1, 1)
    block: Extent = (32, 1, 1)
    arguments: tuple[Value | tuple[Value, ...], ...] = ("out",)
    numbers: tuple[Value, ...] = (32,)
    data: tuple[tuple[Value, ...], ...] = ()
    shared: int = 0
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A text of PTX or of a dialect, what its handles are bound to, how it is compiled, and its launches."""

    text: str
    launches: tuple[Launch, ...]
    dialect: str = "ptx"
    opt: int = 0
    bind: dict[str, str] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)

    def written(self) -> str:
        """The program as a file: its launches in comments, then the text."""
        rest = asdict(replace(self, text="", launches=()))
        lines = [json.dumps(rest), *(json.dumps(asdict(launch)) for launch in self.launches)]
        return "".join(f"{HEAD}{line}\n" for line in lines) + self.text


def _frozen(item: object) -> object:
    return tuple(map(_frozen, item)) if isinstance(item, list) else item


def read(path: Path) -> Program:
    """The program in a file that ``written`` made."""
    lines = path.read_text(encoding="utf-8", errors="surrogatepass").split("\n")
    count = next(index for index, line in enumerate(lines) if not line.startswith(HEAD))
    first, *rest = (json.loads(line[len(HEAD) :]) for line in lines[:count])
    launches = tuple(Launch(**{name: _frozen(item) for name, item in one.items()}) for one in rest)
    return Program(**first | {"text": "\n".join(lines[count:]), "launches": launches})
