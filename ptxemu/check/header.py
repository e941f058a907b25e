"""The module's ``.version``, ``.target`` and ``.address_size`` (PTX ISA, "PTX Module Directives")."""

from __future__ import annotations

import re

from ptxemu.syntax import ast
from ptxemu.text.errors import Diagnostics
from ptxemu.text.suggestions import closest

TARGET = re.compile(r"(?:sm|compute)_0*(\d+)\w*?([af]?)$", re.ASCII)  # ptxas ignores what stands between number and suffix
LIKENESS = 0.8
OPTIONS = frozenset({"texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"})
LAST_MINOR = {1: 5, 2: 3, 3: 2, 4: 3, 5: 1, 6: 5, 7: 8, 8: 8, 9: 5}  # of each major version

# The first version that knows a target.
TARGETS: dict[str, tuple[int, int]] = {
    "10": (1, 0), "11": (1, 0), "12": (1, 2), "13": (1, 2), "20": (2, 0), "21": (2, 0), "30": (3, 0), "32": (4, 0), "35": (3, 1),
    "37": (4, 1), "50": (4, 0), "52": (4, 1), "53": (4, 2), "60": (5, 0), "61": (5, 0), "62": (5, 0), "70": (5, 1), "72": (6, 1),
    "75": (6, 3), "80": (7, 0), "86": (7, 1), "87": (7, 4), "88": (9, 0), "89": (7, 8), "90": (7, 8), "90a": (8, 0),
    "100": (8, 6), "100a": (8, 6), "100f": (8, 8), "103": (8, 8), "103a": (8, 8), "103f": (8, 8), "107": (9, 4),
    "107a": (9, 4), "107f": (9, 4), "110": (9, 0), "110a": (9, 0), "110f": (9, 0), "120": (8, 7), "120a": (8, 7),
    "120f": (8, 8), "121": (8, 8), "121a": (8, 8), "121f": (8, 8),
}  # fmt: skip


def target_parts(words: tuple[str, ...]) -> tuple[int, str]:
    """The number and the suffix of the ``sm_NN`` word of ``.target``; 0 if there is none."""
    found = [match for match in map(TARGET.match, words) if match]
    return (int(found[0].group(1)), found[0].group(2)) if found else (0, "")


def check_header(tree: ast.Module, diagnostics: Diagnostics, strict: bool) -> None:
    """Report missing directives; in strict mode also versions and targets that do not exist or do not match."""
    hides = diagnostics.damage.hides
    if (tree.version is None and hides("version")) or (not tree.target and hides("target")):
        return
    if tree.version is None:
        diagnostics.error("the module has no .version directive", _next_item(tree, diagnostics, after="target"))
    elif not tree.target:
        diagnostics.error("the module has no .target directive", _next_item(tree, diagnostics))
    if tree.address_size not in (None, 64, 32):
        diagnostics.error(f".address_size {tree.address_size} is not 32 or 64", tree.address_size_pos)
    if tree.version and tree.target:
        known = len(diagnostics.records)
        _order(tree, diagnostics)
        if strict:
            _version(tree.version, tree, diagnostics)
            _target(tree.version, tree, diagnostics, ordered=len(diagnostics.records) == known)
            if tree.address_size is not None and tree.version < (2, 3):
                diagnostics.error("'.address_size' needs PTX 2.3", tree.address_size_pos)


def _next_item(tree: ast.Module, diagnostics: Diagnostics, after: str = "") -> int:
    """Where a missing directive should have been: at the start of the file, or behind the directive ``after``."""
    places = [tree.address_size_pos] if tree.address_size is not None else []
    places += [item.pos for item in tree.items[:1]]
    if tree.target and not after:
        places.append(tree.target_pos)
    return min(places, default=len(diagnostics.source.text))


def _order(tree: ast.Module, diagnostics: Diagnostics) -> None:
    first = min((item.pos for item in tree.items), default=None)
    places = sorted([tree.version_pos, tree.target_pos, *([] if first is None else [first])])
    if places[0] != tree.version_pos:
        diagnostics.error("'.version' must be the first directive", places[1 if places[0] == tree.target_pos else 0])
    elif first is not None and first < tree.target_pos:
        diagnostics.error("'.target' must come before every declaration", first)
    if tree.address_size is not None:
        if tree.address_size_pos < tree.target_pos:
            _report("'.address_size' must follow '.target'", ".address_size", tree.address_size_pos, diagnostics)
        elif first is not None and first < tree.address_size_pos:
            _report("'.address_size' must come before every declaration", ".address_size", tree.address_size_pos, diagnostics)


def _version(version: tuple[int, int], tree: ast.Module, diagnostics: Diagnostics) -> None:
    major, minor = version
    if minor > LAST_MINOR.get(major, -1):
        text = f"there is no PTX version {major}.{minor}; the last one is {_last(major)}"
        _report(text, f"{major}.{minor}", tree.version_pos, diagnostics)


def _last(major: int) -> str:
    """The last version of a major version, or of all."""
    known = major if major in LAST_MINOR else max(LAST_MINOR)
    return f"{known}.{LAST_MINOR[known]}"


def _report(message: str, word: str, directive: int, diagnostics: Diagnostics) -> None:
    """Report at a word of the directive that begins at ``directive``."""
    pos = max(diagnostics.source.text.find(word, directive), directive)
    diagnostics.error(message, pos, pos + len(word))


def _target(version: tuple[int, int], tree: ast.Module, diagnostics: Diagnostics, ordered: bool) -> None:
    name, *options = tree.target
    match = TARGET.match(name)
    for word in tree.target:
        _architecture(word, version, tree, diagnostics, ordered)
    if match is None:
        _report(_unknown_target(name), name, tree.target_pos, diagnostics)
        return
    for option in options:
        if option not in OPTIONS and not TARGET.match(option):
            text = f"unknown target option '{option}'{closest(option, OPTIONS)}"
            _report(text, option, tree.target_pos, diagnostics)
    if {"texmode_unified", "texmode_independent"} <= set(options):
        _report("'texmode_unified' and 'texmode_independent' exclude each other", ".target", tree.target_pos, diagnostics)
    if "map_f64_to_f32" in options and int(match.group(1)) >= 13:
        _report(f"'map_f64_to_f32' is for targets without f64; {name} has it", "map_f64_to_f32", tree.target_pos, diagnostics)


def _architecture(word: str, version: tuple[int, int], tree: ast.Module, diagnostics: Diagnostics, ordered: bool) -> None:
    """A word that names an architecture must name one that exists, and that the version of the module knows."""
    match = TARGET.match(word)
    if match is None:
        return
    least = TARGETS.get(match.group(1) + match.group(2))
    if least is None:
        _report(_unknown_target(word), word, tree.target_pos, diagnostics)
    elif version < least and ordered and not diagnostics.damage:
        text = f"'{word}' needs PTX {least[0]}.{least[1]} (.version is {version[0]}.{version[1]})"
        _report(text, word, tree.target_pos, diagnostics)


def _unknown_target(word: str) -> str:
    return f"unknown target '{word}'{closest(word, [f'sm_{number}' for number in TARGETS], LIKENESS)}"
