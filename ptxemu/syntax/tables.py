"""The parser's LALR tables: generated when the package is built, or in memory where that was not done.

Nothing is written at run time.  A stale file is noticed by PLY's signature of the grammar and ignored.
"""

from __future__ import annotations

from functools import cache
from os import PathLike

from ply import lex, yacc

from ptxemu.syntax import grammar

_MODULE = "ptxemu.syntax._tables"


def generate(path: str | PathLike[str]) -> None:
    """Write the table module ``_tables.py`` to ``path``; build steps call this."""
    import shutil
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        _build("fresh_tables", write_tables=True, outputdir=folder)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(folder) / "fresh_tables.py", path)


@cache
def tables() -> yacc.LRParser:
    """A parser that holds the tables; each parse makes its own :class:`LRParser` of them."""
    parser = _build(_MODULE, write_tables=False)
    parser.defaulted_states = {state: choice for state in parser.action if (choice := _only_choice(parser, state))}
    return parser


def _only_choice(parser: yacc.LRParser, state: int) -> int | None:
    """The reduction that needs no look at the next token; PLY's own rule waits for one more often than needed.

    An empty production has to wait, but for the first: error recovery would make it again whenever it uncovers the state.
    """
    choices = set(parser.action[state].values())
    if len(choices) > 1 or (choice := choices.pop()) >= 0:
        return None
    return choice if parser.productions[-choice].len or state == 0 else None


def _build(module: str, **options: object) -> yacc.LRParser:
    return yacc.yacc(module=grammar, tabmodule=module, debug=False, errorlog=lex.NullLogger(), **options)
