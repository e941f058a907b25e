"""The names of kernels in C++: what a symbol is called where it was written.

Symbols are mangled by the Itanium C++ ABI (section "Mangling"): ``_Z6reducePKfPfi`` is ``reduce``, and
``_ZN4math5scaleIfEEvPT_`` is ``math::scale``. Only names are read here, without arguments of templates and functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ptxemu.text.errors import InputError, shown
from ptxemu.text.suggestions import closest

MANGLED = re.compile(r"_Z(?P<nested>N[rVK]*)?(?P<parts>L?[0-9].*)", re.DOTALL)
LENGTH = re.compile(r"L?([0-9]{1,4})")
ANONYMOUS = ("_GLOBAL__N_", "_INTERNAL_")  # how compilers name namespaces without a name
LISTED = 8  # names in a message


def plain_name(symbol: str) -> str:
    """What a symbol is called in C++, with its namespaces; the symbol itself if it is no function's of C++."""
    found = MANGLED.match(symbol)
    if found is None:
        return symbol
    parts = _parts(found["parts"], 1 if found["nested"] is None else len(symbol))
    return "::".join(part for part in parts if not part.startswith(ANONYMOUS)) or symbol


def _parts(text: str, most: int) -> list[str]:
    """The identifiers that a text begins with, each behind its length, up to the first that is cut off."""
    parts: list[str] = []
    at = 0
    while len(parts) < most and (found := LENGTH.match(text, at)):
        at = found.end() + int(found[1])
        part = text[found.end() : at]
        if len(part) < int(found[1]):
            return []
        parts.append(part)
    return parts


def meant(name: str, symbols: Iterable[str]) -> list[str]:
    """The symbols that a name may mean: that symbol, or all that are called so in C++, with or without namespaces."""
    known = list(symbols)
    if name in known:
        return [name]
    return [symbol for symbol in known if f"::{plain_name(symbol)}".endswith(f"::{name}")]


def symbol_of(name: str, symbols: Iterable[str], owner: str) -> str:
    """The symbol of the kernel that a name means. Raises InputError, beginning with ``owner``, if there is not just one."""
    known = list(symbols)
    found = meant(name, known)
    if len(found) == 1:
        return found[0]
    if not known:
        raise InputError(f"{owner} has no kernels")
    if found:
        raise InputError(f"{owner} has several kernels {shown(name)}: {listed(found)}")
    hint = closest(name, [*known, *map(plain_name, known)]) or f" (it has {listed(known)})"
    raise InputError(f"{owner} has no kernel {shown(name)}{hint}")


def the_symbol(name: str | None, symbols: Iterable[str], owner: str) -> str:
    """The symbol of the kernel that a command is about: the one that ``--entry`` means, or the only one."""
    known = list(symbols)
    if name is not None:
        return symbol_of(name, known, owner)
    if len(known) != 1:
        raise InputError(f"{owner}: --entry is needed: the file has {listed(known) or 'no kernels'}")
    return known[0]


def listed(names: list[str]) -> str:
    """Names in a message, not too many of them."""
    rest = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {rest} more" if rest > 0 else "")
