"""How tests are dealt out to the processes of pytest-xdist: a few neighbours at a time.

Neighbours share what their module makes once. Deals of one test each would cost the controller the square of their number.
"""

from __future__ import annotations

from collections import Counter

from xdist.scheduler import LoadScopeScheduling

IN_ONE_PROCESS = ("tests/project/test_packaging.py", "tests/front/test_ptxas_agreement.py")
"""Files whose tests share what takes long to make. They come first, so that no process is left alone with them at the end."""
NEIGHBOURS = 24


class Neighbours(LoadScopeScheduling):
    """A scope is a whole file if it must be in one process, else a few consecutive tests of a file."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.config.option.loadscopereorder = False
        self._counts: Counter[str] = Counter()
        self._scopes: dict[str, str] = {}

    def _split_scope(self, nodeid: str) -> str:
        if nodeid not in self._scopes:
            file = nodeid.partition("::")[0]
            part = 0 if file in IN_ONE_PROCESS else self._counts[file] // NEIGHBOURS
            self._counts[file] += 1
            self._scopes[nodeid] = f"{file}@{part}"
        return self._scopes[nodeid]


def order(nodeid: str) -> int:
    """The key to sort tests by."""
    return nodeid.partition("::")[0] not in IN_ONE_PROCESS
