"""The terminals of the grammar, their precedence, and its start symbol.

They and the productions make the parser's tables, which are generated where only PLY is installed (``tools/tables.py``):
this module imports nothing but words.
"""

from __future__ import annotations

from ptxemu.syntax.words import WORD_TOKENS

LEXED = (
    "NAME",
    "INTEGER",
    "FLOAT",
    "STRING",
    "INTEGERS",
    "SHIFT",
    "RELATION",
    "EQUALITY",
    "AND",
    "OR",
    *WORD_TOKENS,
)
"""What the lexer makes of text; the others are made by the token stream."""

tokens = (*LEXED, "RUN", "PARAMETERS", "RESYNC")
start = "module"
precedence = (
    ("nonassoc", "HEADER"),
    ("nonassoc", "PRAGMA"),  # after a function's header it belongs to the function
    ("right", "?", ":"),
    ("left", "OR"),
    ("left", "AND"),
    ("left", "|"),
    ("left", "^"),
    ("left", "&"),
    ("left", "EQUALITY"),
    ("left", "<", ">", "RELATION"),
    ("left", "SHIFT"),
    ("left", "+", "-"),
    ("left", "*", "/", "%"),
    ("right", "UNARY"),
)
