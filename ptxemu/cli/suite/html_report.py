"""Results of ``ptxemu test`` for people: one page of HTML that needs nothing else, and is whole without JavaScript."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree.ElementTree import Element

import ptxemu
from ptxemu.cli.suite.exhibit import Exhibit
from ptxemu.cli.suite.markup import add, columns, document, times
from ptxemu.cli.suite.outcome import FINE, PASSED, CaseOutcome, told
from ptxemu.text.errors import InputError
from ptxemu.text.files import make_folder, read_text, write_text

PAGE, TIMES = "index.html", "times.json"
MAX_TIMES = 64 << 20  # bytes of the times of the last run
MAX_PICTURES = 256 << 20  # characters of all pictures of a page
SLOWEST = 40  # cases in the plot of times
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
pre { white-space: pre-wrap; padding: .5rem; background: #8882; }
table { border-collapse: collapse; }
th, td { padding: .1rem .8rem .1rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
details { border-left: .3rem solid #888; padding: .1rem .8rem; margin: .3rem 0; }
details.passed { border-color: #2a2; }
details.wrong { border-color: #d33; }
details.other { border-color: #c90; }
summary { cursor: pointer; }
summary .status { display: inline-block; min-width: 9rem; font-weight: 600; }
summary .seconds { display: inline-block; min-width: 6rem; }
figure { display: inline-block; margin: .5rem 1rem .5rem 0; vertical-align: top; }
figure img { display: block; image-rendering: pixelated; min-width: 16rem; max-width: 100%; background: #8884; }
.pair { position: relative; }
.pair img + img { position: absolute; inset: 0; clip-path: inset(0 50% 0 0); }
.filters, figure.slider { display: none; }
.scripted .filters { display: block; }
.scripted figure.slider { display: inline-block; }
figure.slider input { width: 100%; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; }
svg .now { fill: #38c; }
svg .last { fill: #999; }
.hidden { display: none; }
"""
SCRIPT = """
document.documentElement.classList.add("scripted");
for (const slider of document.querySelectorAll("figure.slider input")) {
  const top = slider.parentNode.querySelector(".pair img + img");
  const move = () => { top.style.clipPath = "inset(0 " + (100 - slider.value) + "% 0 0)"; };
  slider.addEventListener("input", move);
  move();
}
for (const button of document.querySelectorAll(".filters button")) {
  button.addEventListener("click", () => {
    for (const one of document.querySelectorAll("details")) {
      one.classList.toggle("hidden", Boolean(button.value) && !one.classList.contains(button.value));
    }
  });
}
"""


def write_html(folder: Path, results: Sequence[CaseOutcome]) -> None:
    """Write the page into a folder, and the times that the next one is compared with."""
    make_folder(folder)
    last = _last_times(folder / TIMES)
    write_text(folder / PAGE, page(results, last))
    now = {str(item.path): item.seconds for item in results}
    write_text(folder / TIMES, json.dumps({**last, **now}) + "\n")


def page(results: Sequence[CaseOutcome], last: Mapping[str, float]) -> str:
    """The page of some results; ``last`` are the seconds that cases took before, by their paths."""
    root = Element("html", lang="en")
    head = add(root, "head")
    add(head, "meta", charset="utf-8")
    policy = f"default-src 'none'; img-src data:; style-src {_digest(STYLE)}; script-src {_digest(SCRIPT)}"
    add(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    add(head, "meta", name="viewport", content="width=device-width")
    add(head, "title", told(results))
    add(head, "style", STYLE)
    body = add(root, "body")
    add(body, "h1", told(results))
    made = datetime.now(UTC).isoformat(" ", "seconds")
    seconds = sum(item.seconds for item in results)
    add(body, "p", f"ptxemu {ptxemu.__version__}, {made}, {seconds:.2f} s in all cases")
    _filters(body)
    budget = [MAX_PICTURES]
    for item in sorted(results, key=lambda item: item.fine):
        _case(body, item, last.get(str(item.path)), budget)
    add(body, "h2", "Times")
    slowest = sorted(results, key=lambda item: -item.seconds)[:SLOWEST]
    times(body, [(str(item.path), item.seconds, last.get(str(item.path))) for item in slowest])
    legend = "Blue: this run. Grey: the last one that was reported here." if last else "There is no earlier run to compare with."
    add(body, "p", legend)
    add(body, "script", SCRIPT)
    return document(root)


def _digest(text: str) -> str:
    """How a policy names a style or script that a page has in itself."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _filters(body: Element) -> None:
    row = add(body, "p", class_="filters")
    for name, kind in (("All", ""), ("Wrong", "wrong"), ("Skipped and others", "other"), ("Passed", "passed")):
        add(row, "button", name, value=kind)


def _case(body: Element, item: CaseOutcome, last: float | None, budget: list[int]) -> None:
    kind = "passed" if item.status == PASSED else "other" if item.status in FINE else "wrong"
    details = add(body, "details", class_=kind)
    if not item.fine:
        details.set("open", "open")
    summary = add(details, "summary")
    add(summary, "span", item.status, class_="status")
    add(summary, "span", f"{item.seconds:.3f} s", class_="seconds")
    add(summary, "span", str(item.path))
    add(details, "p", item.title + (f" (took {last:.3f} s the last time)" if last is not None else ""))
    for text in (item.message, item.source):
        if text:
            add(details, "pre", text)
    if item.comparisons:
        _comparisons(details, item)
    for exhibit in item.exhibits:
        _exhibit(details, exhibit, budget)
    if item.output:
        add(details, "h4", "Printed")
        add(details, "pre", item.output)


def _comparisons(details: Element, item: CaseOutcome) -> None:
    table = add(details, "table")
    head = add(table, "tr")
    for name in ("Output", "", "Elements", "Differ", "Largest error", "At"):
        add(head, "th", name)
    for one in item.comparisons:
        row = add(table, "tr")
        add(row, "td", one.name)
        add(row, "td", "as expected" if one.passed else "wrong")
        for number in (str(one.elements), str(one.differing), f"{one.largest:.3g}"):
            add(row, "td", number, class_="number")
        add(row, "td", ", ".join(map(str, one.worst)))


def _exhibit(details: Element, exhibit: Exhibit, budget: list[int]) -> None:
    if exhibit.bins or exhibit.infinite:
        add(details, "h4", f"Errors of {exhibit.name}")
        rest = f", {exhibit.infinite} infinitely" if exhibit.infinite else ""
        add(details, "p", f"{exhibit.exact} elements are exact, {sum(exhibit.bins) + exhibit.infinite} are off{rest}")
    if exhibit.bins:
        columns(details, exhibit.bins, (f"1e{exhibit.low:.0f}", f"1e{exhibit.high:.0f}"))
    pictures = {"Result": exhibit.actual, "Expected": exhibit.expected, "Difference": exhibit.difference}
    if not exhibit.actual:
        return
    budget[0] -= sum(map(len, pictures.values()))
    if budget[0] < 0:
        add(details, "p", f"Pictures of {exhibit.name} are left out: the page has too many.")
        return
    add(details, "h4", f"Pictures of {exhibit.name}")
    if not exhibit.difference:
        pictures = {"Result, as expected": exhibit.actual}
    for name, data in pictures.items():
        figure = add(details, "figure")
        _image(figure, data, f"{name} of {exhibit.name}")
        add(figure, "figcaption", name)
    if exhibit.difference:
        figure = add(details, "figure", class_="slider")
        pair = add(figure, "section", class_="pair")
        _image(pair, exhibit.expected, f"Expected {exhibit.name}")
        _image(pair, exhibit.actual, f"Resulting {exhibit.name}, over it")
        add(figure, "input", type="range", min="0", max="100", value="50", aria_label="How much of the result is shown")
        add(figure, "figcaption", "Result | expected")


def _image(parent: Element, data: str, alt: str) -> None:
    add(parent, "img", src=f"data:image/png;base64,{data}", alt=alt)


def _last_times(path: Path) -> dict[str, float]:
    try:
        found = json.loads(read_text(path, MAX_TIMES))
    except (InputError, ValueError, RecursionError):
        return {}
    items = found.items() if isinstance(found, dict) else ()
    return {name: float(seconds) for name, seconds in items if isinstance(seconds, int | float) and 0 <= seconds < 1e9}
