"""The page in a real browser: complete at both widths and in both colour schemes."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from paper.experiments import demo
from paper.report.job import reproduce
from paper.report.order import Order, Scale
from paper.report.parts import TITLES
from paper.report.sections import convergence, metric

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "lopro[plot]"')
pytest.importorskip("pywt", reason='needs PyWavelets: pip install "lopro[examples]"')
playwright = pytest.importorskip(
    "playwright.sync_api", reason='needs Playwright: pip install "lopro[dev]"'
)

NO_BROWSER = "no Chromium: install the package chromium, or run 'playwright install chromium'"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: No sandbox for root, no graphics card, and no network requests by the browser itself.
ARGUMENTS = [
    *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
VIEWS = [(width, scheme) for width in (400, 1400) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run every part, as small as it gets, and return the page."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        # Long names overflow first.
        quick = replace(demo.cases()[2], method_name="LoPGD with the schedule of Theorem 2")
        patch.setattr(demo, "cases", lambda: [quick] * 5)
        size, settings, _ = convergence._sizes(Order(Scale.SHORT))
        patch.setattr(convergence, "_sizes", lambda order: (size, settings, 0.2))
        patch.setattr(metric, "_size", lambda order: metric._Size(20, 1e-2, 5.0))
        reproduce(order=Order(Scale.SHORT), out=folder)
    return folder / "index.html"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        own = running.chromium.executable_path
        found = next(filter(None, map(shutil.which, NAMES)), own if Path(own).exists() else None)
        if found is None:
            pytest.skip(NO_BROWSER)
        started = running.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser, report):
    """Return a function that opens the page and a list of all that went wrong meanwhile."""
    opened = []

    def open_it(width: int, scheme: str):
        trouble: list[str] = []
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened.append(page)
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: _note_request(request.url, trouble))
        page.goto(report.as_uri())
        return page, trouble

    yield open_it
    for page in opened:
        page.close()


def _note_request(url: str, trouble: list[str]) -> None:
    if not url.startswith(("file:", "data:")):
        trouble.append(f"request to the network: {url}")


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_it_opens_without_errors_and_shows_everything(open_page, width, scheme):
    page, trouble = open_page(width, scheme)
    assert trouble == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert [s.get_attribute("id") for s in page.locator("section").all()] == [*TITLES, "machine"]
    assert page.locator(".pending, .failure").count() == 0
    tables, plots, images = (page.locator(kind) for kind in ("table", "svg.plot", "img"))
    assert (tables.count(), plots.count(), images.count()) == (12, 15, 3)
    for table in tables.all():
        assert table.is_visible() and table.locator("tbody tr").count() >= 4
    for picture in [*plots.all(), *images.all()]:
        box = picture.bounding_box()
        assert box["width"] >= 150 and box["height"] >= 100 and box["x"] + box["width"] <= width
    assert page.evaluate("[...document.images].every(i => i.naturalWidth > 0)")


def test_a_wide_table_scrolls_in_its_own_box(open_page):
    page, _ = open_page(400, "light")
    box = page.locator("#table1 .box").first
    assert box.evaluate("b => b.scrollWidth > b.clientWidth && b.tabIndex === 0")
    box.evaluate("b => { b.scrollLeft = 50; }")
    assert box.evaluate("b => b.scrollLeft") == 50
    assert page.evaluate("document.documentElement.scrollLeft") == 0


def test_every_link_leads_somewhere_and_ids_are_unique(open_page):
    page, _ = open_page(1400, "light")
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    targets = page.evaluate(
        "[...document.querySelectorAll('a')].map(a => a.getAttribute('href').slice(1))"
    )
    # One link in the contents and one in each heading.
    assert sorted(targets) == sorted(2 * [*TITLES, "machine"])
    inside = page.evaluate(
        "[...document.querySelectorAll('use')].map(u => u.getAttribute('href').slice(1))"
    )
    assert inside and set(inside) <= set(ids)


def test_pictures_have_alternative_texts(open_page):
    page, _ = open_page(1400, "light")
    plots = page.evaluate("[...document.querySelectorAll('svg.plot')].map(s => s.ariaLabel)")
    images = page.evaluate("[...document.images].map(i => i.alt)")
    assert all(len(words) > 15 for words in plots + images)
    assert page.locator("svg.plot[role=img]").count() == len(plots)


@pytest.mark.parametrize("width", [400, 1400])
def test_no_word_of_a_figure_is_cut_off(open_page, width):
    page, _ = open_page(width, "light")
    cut = page.evaluate(
        """[...document.querySelectorAll('svg.plot text')].filter(t => {
            const a = t.getBoundingClientRect(), b = t.closest('svg').getBoundingClientRect();
            return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1
                || a.bottom > b.bottom + 1;
        }).map(t => t.closest('svg').ariaLabel + ': ' + t.textContent)"""
    )
    assert cut == []


CONTRAST = """([selector, property]) => {
    const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
    const light = c => rgb(c).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
    const card = light(getComputedStyle(document.querySelector('figure')).backgroundColor);
    return Math.min(...[...document.querySelectorAll(selector)]
        .map(e => getComputedStyle(e)[property]).filter(c => c !== 'none')
        .map(light).map(l => (Math.max(l, card) + 0.05) / (Math.min(l, card) + 0.05)));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_can_be_read_in_both_schemes(open_page, scheme):
    page, _ = open_page(1400, scheme)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    bright = sum(int(v) for v in background[4:-1].split(",")) > 3 * 128
    assert bright == (scheme == "light")
    # The contrast that guidelines for accessible pages require of text, and of lines.
    assert page.evaluate(CONTRAST, ["svg.plot text", "fill"]) >= 4.5
    assert page.evaluate(CONTRAST, ["svg.plot path[clip-path]", "stroke"]) >= 3.0
