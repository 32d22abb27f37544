"""Pieces of the report: blocks in files, figures in the page's colours, progress."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from paper.report.blocks import Paragraph, Picture, Pictures, Points, Section, Table
from paper.report.progress import Announcer

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "lopro[plot]"')

from paper.report.curves import Named, curves_figure
from paper.report.draft import Draft, Drawing
from paper.report.style import BLUE, SERIES
from paper.report.svg import inline_svg


def test_a_section_comes_back_from_plain_data_as_it_was():
    blocks = (
        Paragraph("p"),
        Points(("a", "b")),
        Table("t", ("x", "y"), (("1", "2"),), groups=(("g", 2),), note="n"),
        Pictures((Picture("f.svg", "alt", "caption"),), most=1),
    )
    section = Section("title", blocks, {"seed": "0"}, ("failed",))
    assert Section.from_dict(section.to_dict()) == section


def test_a_table_with_a_row_or_groups_of_another_width_is_refused():
    with pytest.raises(ValueError, match="another width"):
        Table("t", ("x", "y"), (("1",),))
    with pytest.raises(ValueError, match="another width"):
        Table("t", ("x", "y"), (("1", "2"),), groups=(("g", 1),))


def test_figures_take_colours_and_font_of_the_page():
    figure = curves_figure([Named("a & b", [1, 10], [1.0, 0.1])], "title", "x", "y")
    svg = inline_svg(figure, "mine", 'it says "falling"')
    assert svg.startswith('<svg class="plot" role="img" aria-label="it says &quot;falling&quot;"')
    assert "var(--blue)" in svg and BLUE.lower() not in svg and "font-family" not in svg
    assert "<style" not in svg and "<metadata" not in svg and "a &amp; b" in svg
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert ids and all(name.startswith("mine-") for name in ids)
    assert set(re.findall(r'href="#([^"]+)"', svg)) <= set(ids)
    assert svg == inline_svg(figure, "mine", 'it says "falling"')


def test_no_number_of_a_label_is_shortened():
    figure = curves_figure([Named("rho = 0.123456", [1, 2], [0.003, 0.006])], "24.375 dB", "x", "y")
    text = re.sub("<[^>]+>", " ", inline_svg(figure, "f", "alt"))
    assert {"0.123456", "24.375", "0.005"} <= set(text.split())


def test_every_colour_of_the_palette_follows_the_page():
    names = [Named(str(k), [1, 10], [1.0, 0.1]) for k in range(len(SERIES))]
    svg = inline_svg(curves_figure(names, "t", "x", "y", from_zero=True), "f", "alt")
    assert re.findall(r"#[0-9a-fA-F]{6}\b", svg) == []


def test_curves_on_a_counting_axis_start_at_zero():
    ax = curves_figure(
        [Named("a", [0, 1, 90], [1.0, 0.1, 0.0])], "t", "x", "y", from_zero=True
    ).axes[0]
    assert list(ax.get_xticks()) == [0.0, 1.0]  # the point without a gap is not shown
    assert ax.get_xlim()[0] < 0.0


def test_an_image_goes_into_a_png_pixel_by_pixel():
    from matplotlib.image import imread

    image = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    draft = Draft("title")
    draft.pictures([Drawing("grey", image, "alt", "caption")])
    back = imread(io.BytesIO(draft.files["grey.png"]))
    assert back.shape[:2] == (2, 3)
    np.testing.assert_allclose(back[..., 0], image, atol=1 / 255)


def test_live_progress_shows_every_part(capsys: pytest.CaptureFixture[str]):
    with Announcer(["one", "two"], live=True) as announcer:
        announcer.begin("one")
        announcer.say("[deep] in thought")
        announcer.end("one", "done")
    shown = capsys.readouterr().out
    assert "one" in shown and "two" in shown and "done" in shown
