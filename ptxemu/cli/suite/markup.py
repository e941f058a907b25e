"""HTML as a tree: what is text cannot become markup, whatever it says."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from ptxemu.cli.suite.report import clean

BAR_HEIGHT = 18
CHART_WIDTH = 480
LABEL_WIDTH, LONGEST_LABEL = 300, 44  # pixels, and characters that they hold
TEXT_WIDTH = 150
ROW_HEIGHT = 36


def add(parent: Element, tag: str, text: str = "", /, **attributes: str) -> Element:
    """A new element with a text; ``class_`` stands for ``class``, and _ for -."""
    named = {name.rstrip("_").replace("_", "-"): clean(value) for name, value in attributes.items()}
    element = SubElement(parent, tag, named)
    element.text = clean(text)
    return element


def document(root: Element) -> str:
    """The text of a page."""
    return "<!DOCTYPE html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def columns(parent: Element, counts: Sequence[int], labels: tuple[str, str]) -> None:
    """A histogram, with what its ends mean."""
    height, step = 80, CHART_WIDTH // max(1, len(counts))
    chart = _chart(parent, CHART_WIDTH, height + BAR_HEIGHT, f"Histogram of errors from {labels[0]} to {labels[1]}")
    for number, count in enumerate(counts):
        tall = round(height * count / max(counts)) if count < max(counts) else height
        tall = max(tall, 1) if count else 0
        add(_bar(chart, number * step, height - tall, step - 1, tall, "now"), "title", str(count))
    add(chart, "text", labels[0], x="0", y=str(height + BAR_HEIGHT - 4))
    add(chart, "text", labels[1], x=str(step * len(counts)), y=str(height + BAR_HEIGHT - 4), text_anchor="end")


def times(parent: Element, rows: Sequence[tuple[str, float, float | None]]) -> None:
    """Bars of times in seconds, each above that of the last run, if there is one."""
    longest = max((max(now, last or 0) for _, now, last in rows), default=0) or 1
    chart = _chart(parent, LABEL_WIDTH + CHART_WIDTH + TEXT_WIDTH, len(rows) * ROW_HEIGHT, "Times of this run and the last")
    for number, (name, now, last) in enumerate(rows):
        top = number * ROW_HEIGHT
        baseline = str(top + BAR_HEIGHT - 4)
        add(chart, "text", name if len(name) <= LONGEST_LABEL else f"...{name[3 - LONGEST_LABEL :]}", x="0", y=baseline)
        for offset, seconds, kind in ((4, now, "now"), (4 + BAR_HEIGHT // 2, last, "last")):
            if seconds is not None:
                width = max(1, round(CHART_WIDTH * seconds / longest))
                _bar(chart, LABEL_WIDTH, top + offset, width, BAR_HEIGHT // 2 - 1, kind)
        told = f"{now:.3g} s" + (f", was {last:.3g} s" if last is not None else "")
        end = LABEL_WIDTH + round(CHART_WIDTH * max(now, last or 0) / longest)
        add(chart, "text", told, x=str(end + 6), y=baseline)


def _bar(chart: Element, x: int, y: int, width: int, height: int, kind: str) -> Element:
    return add(chart, "rect", x=str(x), y=str(y), width=str(width), height=str(height), class_=kind)


def _chart(parent: Element, width: int, height: int, title: str) -> Element:
    chart = add(parent, "svg", width=str(width), height=str(height), role="img", aria_label=title)
    chart.set("viewBox", f"0 0 {width} {height}")
    return chart
