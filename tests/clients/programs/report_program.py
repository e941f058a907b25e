"""Opens the page of a suite in Chromium, ``report_program.py FOLDER CHROMIUM``: it has ``actual.png`` and ``expected.png``."""

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, sync_playwright


def pixels(picture: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")).astype(int)


def centres(shot: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The colours in the middle of each pixel of a picture of some height and width that was enlarged."""
    rows, columns = ((2 * np.arange(extent) + 1) * size // (2 * extent) for extent, size in zip(shape, shot.shape))
    return shot[rows][:, columns]


def same(place: Locator, wanted: np.ndarray) -> None:
    found = centres(pixels(place.screenshot()), wanted.shape[:2])
    assert np.abs(found - wanted).max() <= 2, "a picture is not what it should be"


def slid(page: Page, value: int) -> None:
    page.locator("figure.slider input").first.evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }", value
    )


def look(page: Page, folder: Path, scripted: bool) -> None:
    actual, expected = (pixels((folder / f"{name}.png").read_bytes()) for name in ("actual", "expected"))
    wrong = page.locator("details.wrong")
    assert wrong.count() == 2 and all(wrong.nth(number).get_attribute("open") is not None for number in range(2))
    assert page.locator("details.passed").count() == 1
    same(page.get_by_alt_text("Result of p", exact=True), actual)
    same(page.get_by_alt_text("Expected of p", exact=True), expected)
    difference = centres(pixels(page.get_by_alt_text("Difference of p", exact=True).screenshot()), actual.shape[:2])
    assert ((difference.sum(axis=2) > 0) == (actual != expected).any(axis=2)).all()
    bars = page.get_by_role("img", name="Times of this run and the last")
    assert all(bars.locator(f"rect.{kind}").count() == 3 for kind in ("now", "last"))
    assert all(bars.locator(f"rect.{kind}").first.is_visible() for kind in ("now", "last"))
    slider = page.locator("figure.slider")
    assert slider.first.is_visible() == scripted
    if scripted:
        pair = slider.locator(".pair").first
        slid(page, 100)
        same(pair, actual)
        slid(page, 0)
        same(pair, expected)
        slid(page, 50)
        half = actual.shape[1] // 2
        same(pair, np.concatenate((actual[:, :half], expected[:, half:]), axis=1))
        page.get_by_role("button", name="Passed", exact=True).click()
        assert page.locator("details:visible").count() == 1
        page.get_by_role("button", name="All", exact=True).click()
        assert page.locator("details:visible").count() == 3


def visit(browser: Browser, folder: Path, scripted: bool) -> None:
    page = browser.new_page(java_script_enabled=scripted, viewport={"width": 1400, "height": 1000})
    asked: list[str] = []
    told: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("dialog", lambda dialog: told.append(dialog.message))
    page.goto((folder / "index.html").as_uri())
    look(page, folder, scripted)
    assert all(url.startswith(("file:", "data:")) for url in asked), asked
    assert not told, told


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=sys.argv[2], args=["--no-sandbox"])
        for scripted in (True, False):
            visit(browser, Path(sys.argv[1]), scripted)
        browser.close()
    print("right")


main()
