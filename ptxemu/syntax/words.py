"""The reserved dotted words of PTX and the token type of each (PTX ISA, "Directives")."""

from __future__ import annotations

from ptxemu.ir.types import TYPES

SPACES = ("reg", "sreg", "const", "global", "local", "param", "shared", "tex")
LINKAGES = ("extern", "visible", "weak", "common")
TUNING = {
    "maxntid": 3,
    "reqntid": 3,
    "minnctapersm": 1,
    "minperctamemory": 1,
    "maxnctapersm": 1,
    "maxnreg": 1,
    "noreturn": 0,
    "explicitcluster": 0,
    "reqnctapercluster": 3,
    "maxclusterrank": 1,
    "blocksareclusters": 0,
    "abi_preserve": 1,
    "abi_preserve_control": 1,
}
"""Performance-tuning, cluster and function directives, and the most integers that each takes (at least one if any)."""

_SINGLE = (
    "version",
    "target",
    "address_size",
    "file",
    "entry",
    "func",
    "align",
    "ptr",
    "pragma",
    "alias",
    "attribute",
    "branchtargets",
    "calltargets",
    "callprototype",
)

DIRECTIVES: dict[str, str] = {
    **{word: word.upper() for word in _SINGLE},
    **{word: "SPACE" for word in SPACES},
    **{word: "LINKAGE" for word in LINKAGES},
    **{word: "TUNING" for word in TUNING},
    **{word: "VECTOR" for word in ("v2", "v4", "v8")},
    **{word: "TYPE" for word in TYPES},
}
"""Dotted word, without its dot -> token type; every other dotted word is a MODIFIER."""

WORD_TOKENS = (*dict.fromkeys(DIRECTIVES.values()), "MODIFIER")

MODULE_ONLY = frozenset(("VERSION", "TARGET", "ADDRESS_SIZE", "ENTRY", "FUNC", "ALIAS", "LINKAGE"))
"""Directives that cannot occur inside a function: seeing one there means that a ``}`` is missing."""

ITEM_STARTS = MODULE_ONLY | {"SPACE", "FILE", "PRAGMA"}
"""Directives at which the parser can resume after an error."""
