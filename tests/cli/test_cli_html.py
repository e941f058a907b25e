"""``ptxemu test --html``: one page, whole and safe whatever cases say. tests/clients/report_in_browser.py opens it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ptxemu.case.compare import Comparison
from ptxemu.cli import run
from ptxemu.cli.suite.exhibit import Exhibit, exhibit
from ptxemu.cli.suite.html_report import SCRIPT, STYLE, page
from ptxemu.cli.suite.outcome import FAILED, PASSED, CaseOutcome
from tests.support import api_kernels as ptx

HOSTILE = "</script></style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'&lt;\x00\x1b[31m\ud800"
VOID = {"meta", "img", "input", "link"}
OPTIONS = ("--engine", "interpreter")


class Page(HTMLParser):
    """The elements of a page: tags, attributes and texts; tags must be closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def pictures(self, alt: str) -> list[np.ndarray]:
        found = [item["src"].removeprefix("data:image/png;base64,") for item in self.all("img") if item["alt"].startswith(alt)]
        return [np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) for data in found]


def outcome(name: str, status: str = PASSED, **others: object) -> CaseOutcome:
    facts = {"message": "", "seconds": 0.5, **others}
    return CaseOutcome(Path(name), name, status, **facts)  # type: ignore[arg-type]


def checked(text: str) -> Page:
    """A page, which must need nothing from elsewhere and have no script but its own."""
    found = Page(text)
    assert found.texts["script"] == [SCRIPT] and found.texts["style"] == [STYLE]
    for tag, attributes in found.elements:
        assert not any(name.startswith("on") or name in ("style", "href", "action", "srcset") for name in attributes), tag
        assert attributes.get("src", "data:").startswith("data:")
    (policy,) = (item["content"] for item in found.all("meta") if item.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; img-src data:; ") and "unsafe" not in policy
    for own in (STYLE, SCRIPT):
        assert base64.b64encode(hashlib.sha256(own.encode()).digest()).decode() in policy
    return found


def test_what_cases_say_stays_text() -> None:
    item = outcome(
        HOSTILE, FAILED, message=HOSTILE, output=HOSTILE, source=HOSTILE,
        comparisons=(Comparison(HOSTILE, False, HOSTILE, 4, 2, 1.0, (1,)),),
        exhibits=(Exhibit(HOSTILE, 2, 0, -1, 0, (1, 1)),),
    )  # fmt: skip
    found = checked(page([item], {}))
    shown = re.sub("[\x00\x1b\ud800]", "?", HOSTILE)
    for tag in ("pre", "td", "p", "span"):
        assert shown in found.texts[tag], tag
    assert found.texts["pre"].count(shown) == 3
    assert any(shown in text for text in found.texts["h4"])


def test_wrong_cases_come_first_and_are_open() -> None:
    found = checked(page([outcome("a"), outcome("b", FAILED, message="no"), outcome("c", "skipped")], {}))
    assert [(item["class"], "open" in item) for item in found.all("details")] == [
        ("wrong", True), ("passed", False), ("other", False),
    ]  # fmt: skip
    assert found.texts["h1"] == ["1 of 3 passed, 1 skipped"]


def test_times_stand_beside_those_of_the_last_run() -> None:
    found = checked(page([outcome("a", seconds=2.0), outcome("b", seconds=1.0), outcome("c", seconds=0.5)], {"a": 1.0, "c": 4.0}))
    widths = [(item["class"], int(item["width"])) for item in found.all("rect")]
    assert widths == [("now", 240), ("last", 120), ("now", 120), ("now", 60), ("last", 480)]
    assert {"2 s, was 1 s", "1 s", "0.5 s, was 4 s"} <= set(found.texts["text"])


def test_pictures_are_those_of_the_arrays() -> None:
    expected = (np.arange(5 * 7 * 4) % 256).astype(np.uint8).reshape(5, 7, 4)
    actual = expected.copy()
    actual[1, 2, 0] ^= 64
    actual[4, 6, 1] ^= 32
    shown = exhibit("p", actual, expected, False)
    assert shown.exact == 138 and sum(shown.bins) == 2
    found = checked(page([outcome("a", FAILED, exhibits=(shown,))], {}))
    for picture, array in ((found.pictures("Result of p"), actual), (found.pictures("Expected of p"), expected)):
        np.testing.assert_array_equal(picture[0], array)
    difference = np.zeros((5, 7), np.uint8)
    difference[1, 2], difference[4, 6] = 255, 128
    np.testing.assert_array_equal(found.pictures("Difference of p")[0], difference)
    assert len(found.all("input")) == 1
    equal = exhibit("p", expected, expected, False)
    assert len(checked(page([outcome("a", exhibits=(equal,))], {})).all("img")) == 1


def test_what_is_a_picture() -> None:
    def is_picture(array: np.ndarray, is_surface: bool = False) -> bool:
        return bool(exhibit("x", array, array, is_surface).actual)

    assert is_picture(np.zeros((4, 4), np.uint8)) and is_picture(np.zeros((4, 4, 1), np.uint8))
    assert is_picture(np.zeros((4, 4, 3), np.float32)) and is_picture(np.full((4, 4), np.nan, np.float32), True)
    for array in (np.zeros(9, np.uint8), np.zeros((4, 4), np.float32), np.zeros((1, 4), np.uint8), np.zeros((4, 4, 4), np.int32)):
        assert not is_picture(array)


def test_errors_are_counted_by_their_size() -> None:
    expected = np.zeros(8)
    shown = exhibit("x", np.array([0, 0, 1.5e-3, 2e-3, 0.5, -0.5, np.inf, np.nan]), expected, False)
    assert (shown.exact, shown.infinite, shown.low, shown.high) == (2, 2, -3, 0)
    assert len(shown.bins) == 12 and sum(shown.bins) == 4 and shown.bins[0] == 1 and shown.bins[-2] == 2


CASE = """
ptx = "k.ptx"
grid = 1
block = 32
args = {{ n = 16, a = 2, x = {x}, y = {{ zeros = {{ dtype = "f32", shape = [4, 4] }} }} }}
[expect.outputs.y]
expression = "np.ones((4, 4), 'f4')"
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "k.ptx").write_text(ptx.SAXPY)
    (tmp_path / "wrong.toml").write_text(CASE.format(x='{ full = { dtype = "f32", shape = 16, value = 1 } }'))
    (tmp_path / "fault.toml").write_text(CASE.format(x=0))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("more", [(), ("-j", "2"), ("--isolate",)])
def test_a_suite_writes_its_page(suite: Path, more: tuple[str, ...]) -> None:
    for _ in range(2):
        assert run(["test", ".", "--html", "report/deep", *OPTIONS, *more]) == 1
    found = checked(Path("report/deep/index.html").read_text())
    line = ptx.SAXPY[: ptx.SAXPY.index("ld.global.f32 %f2")].count("\n") + 1
    assert any(f">{line:5}   ld.global.f32 %f2" in text for text in found.texts["pre"]), "the line of the fault"
    assert "0 elements are exact, 16 are off" in found.texts["p"]
    assert any(", was " in text for text in found.texts["text"])
    assert set(json.loads(Path("report/deep/times.json").read_text())) == {"wrong.toml", "fault.toml"}


def test_what_cannot_be_compared_is_not_shown(suite: Path) -> None:
    for expression in ("np.ones(4)", "np.ones((4, 4), int)", "None"):
        (suite / "wrong.toml").write_text(
            CASE.format(x=0).replace("n = 16", "n = 0").replace("np.ones((4, 4), 'f4')", expression)
        )
        assert run(["test", "wrong.toml", "--html", "report", *OPTIONS]) == 1
        assert "Errors of" not in Path("report/index.html").read_text()


@pytest.mark.parametrize("content", ["[", "[1]", '{"wrong.toml": "x", "fault.toml": -1}', "[" * 100_000])
def test_times_that_are_damaged_are_none(suite: Path, content: str) -> None:
    Path("report").mkdir()
    Path("report/times.json").write_text(content)
    assert run(["test", "wrong.toml", "--html", "report", *OPTIONS]) == 1
    assert ", was " not in Path("report/index.html").read_text()


def test_a_folder_that_cannot_be_written(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("report").write_text("")
    assert run(["test", "wrong.toml", "--html", "report", *OPTIONS]) == 2
    assert "report: File exists" in capsys.readouterr().err
