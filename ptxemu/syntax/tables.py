"""The parser's LALR tables: ``_tables.py``, which the build writes, or made in memory where that was not done.

Nothing is written at run time.  A stale file is noticed by PLY's signature of the grammar and ignored.
"""

from __future__ import annotations

from functools import cache
from inspect import cleandoc

from ply import lex, yacc

from ptxemu.process.locks import importing
from ptxemu.syntax import grammar


@cache
def tables() -> yacc.LRParser:
    """A parser that holds the tables; each parse makes its own :class:`LRParser` of them."""
    for name, rule in vars(grammar).items():
        if name.startswith("p_"):
            rule.__doc__ = cleandoc(rule.__doc__)  # as Python does from 3.13 on: signatures are alike everywhere
    with importing:  # PLY imports the file
        parser = yacc.yacc(
            module=grammar, tabmodule="ptxemu.syntax._tables", write_tables=False, debug=False, errorlog=lex.NullLogger()
        )
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
