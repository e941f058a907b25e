"""Profiles as a page: source beside heat. It needs nothing else, and runs no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element

from ptxemu.cli.profile.columns import COLUMNS, number
from ptxemu.cli.profile.facts import NOTE, sample_note
from ptxemu.cli.profile.text import render
from ptxemu.cli.suite.markup import add, document
from ptxemu.profiler.metrics import INSTRUCTIONS
from ptxemu.profiler.profile import Line, Profile
from ptxemu.text.listings import Listings

CONTEXT = 3  # lines of a file around those that did something
STEPS = 10  # of heat
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 100rem; margin: 2rem auto; padding: 0 1rem; }
pre { white-space: pre-wrap; padding: .5rem; background: #8882; }
table { border-collapse: collapse; }
th, td { padding: 0 .6rem 0 0; text-align: right; font-variant-numeric: tabular-nums; }
td.code { text-align: left; white-space: pre; font: 13px/1.5 ui-monospace, monospace; }
td.place { color: #888; }
""" + "".join(
    f"tr.heat{step} {{ background: rgb(255 {180 - 15 * step} 0 / {0.05 * step:.2f}); }}\n" for step in range(1, STEPS + 1)
)


def page(title: str, profiles: Sequence[Profile], listings: Listings) -> str:
    """The page of some launches."""
    root = Element("html", lang="en")
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    add(head, "meta", http_equiv="Content-Security-Policy", content=f"default-src 'none'; style-src 'sha256-{digest}'")
    add(head, "meta", name="viewport", content="width=device-width")
    add(head, "title", f"{title}: profile")
    add(head, "style", STYLE)
    body = add(root, "body")
    add(body, "h1", title)
    add(body, "p", NOTE)
    for profile in profiles:
        _launch(body, profile, listings)
    return document(root)


def _launch(body: Element, profile: Profile, listings: Listings) -> None:
    add(body, "h2", f"{profile.kernel}, {profile.shape.blocks} blocks of {profile.shape.threads} threads")
    if note := sample_note(profile):
        add(body, "p", note)
    details = add(body, "details")
    add(details, "summary", "Totals")
    add(details, "pre", "\n".join(list(render("", [profile], listings))[2:]))
    cuda = profile.cuda_lines(listings)
    for file in dict.fromkeys(line.place.file for line in cuda):
        known = {line.place.line: line for line in cuda if line.place.file == file}
        _table(body, file, known, listings.lines(file))
    ptx: dict[str, dict[int, Line]] = {}
    for line in profile.ptx_lines():
        ptx.setdefault(line.place.file, {})[line.place.line] = line
    for file, found in ptx.items():
        _table(body, file, found, [])


def _table(body: Element, file: str, known: Mapping[int, Line], texts: Sequence[str]) -> None:
    """The lines of a file that did something, with some around them where their ``texts`` are known."""
    add(body, "h3", file)
    table = add(body, "table")
    row = add(table, "tr")
    for column in COLUMNS:
        add(row, "th", column.title, title=column.explained)
    add(row, "th", "line")
    most = max(line.sums[INSTRUCTIONS] for line in known.values()) or 1
    for number_of_line in _shown(known, len(texts)):
        line = known.get(number_of_line)
        text = (line.text if line is not None else texts[number_of_line - 1]) or ""
        _row(table, line, number_of_line, text, most)


def _shown(known: Mapping[int, Line], lines: int) -> list[int]:
    around = {near for line in known for near in range(line - CONTEXT, line + CONTEXT + 1) if 0 < near <= lines}
    return sorted(around | set(known))


def _row(table: Element, line: Line | None, place: int, text: str, most: int) -> None:
    heat = 0 if line is None else -(-STEPS * line.sums[INSTRUCTIONS] // most)
    row = add(table, "tr", class_=f"heat{heat}") if heat else add(table, "tr")
    for column in COLUMNS:
        add(row, "td", "" if line is None else number(column.value(line.sums)))
    add(row, "td", str(place), class_="place")
    add(row, "td", text, class_="code")
