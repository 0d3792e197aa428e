"""The report in a browser: no wider than a phone, no violation of axe-core, colours that all can tell apart."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.browser import PHONE, beyond_the_edge, needs_chromium, printed_pages, violations
from tests.report.documents import rehearsal, release

from dovetail.core.display import COLOURS
from dovetail.report.html import render_html

# Machado, Oliveira, Fernandes (2009), A Physiologically-based Model for Simulation of Color Vision Deficiency
BLIND = {
    "nobody": np.eye(3),
    "red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "blue": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
WHITE = np.array([0.9505, 1.0, 1.089])
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
CLEARLY = 10.0  # CIE 1976 distance; 2.3 is just noticeable


@needs_chromium
@pytest.mark.exhaust
@pytest.mark.parametrize("document", [rehearsal, release])
def test_the_report_fits_a_phone(document: object, tmp_path: Path) -> None:
    assert callable(document)
    assert beyond_the_edge(render_html(document()), tmp_path) == 0


@needs_chromium
@pytest.mark.exhaust
def test_a_page_that_is_too_wide_would_be_found(tmp_path: Path) -> None:
    assert beyond_the_edge("<div style='width:600px'>wide</div>", tmp_path) > 200


@needs_chromium
@pytest.mark.exhaust
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [None, PHONE])
def test_axe_finds_nothing_in_the_report(width: int | None, dark: bool, tmp_path: Path) -> None:
    assert violations(render_html(rehearsal()), tmp_path, dark=dark, width=width) == []


@needs_chromium
@pytest.mark.exhaust
@pytest.mark.parametrize("width", [None, PHONE])
def test_a_picture_without_words_would_be_found(width: int | None, tmp_path: Path) -> None:
    page = "<html lang=en><title>t</title><body><main><h1>t</h1><img src=x></main></body></html>"
    assert "image-alt" in [rule for rule, *_ in violations(page, tmp_path, dark=False, width=width)]


@needs_chromium
@pytest.mark.exhaust
@pytest.mark.parametrize("document", [rehearsal, release])
def test_a_report_is_printed_on_four_sheets_and_what_is_folded_only_if_opened(
    document: object, tmp_path: Path
) -> None:
    assert callable(document)
    page = render_html(document())
    opening, end, _ = page.partition("</header>")
    assert end and printed_pages(f"{opening}</header></main></body></html>", tmp_path) == 1
    closed = printed_pages(page, tmp_path)
    assert closed <= 4 and printed_pages(page.replace("<details", "<details open"), tmp_path) > closed


def lab(colour: str, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIE L*a*b* of a colour as somebody sees it."""
    srgb = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    part = TO_XYZ @ np.clip(matrix @ linear, 0.0, 1.0) / WHITE
    root = np.where(part > (6 / 29) ** 3, np.cbrt(part), part / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def nearest(colours: tuple[str, ...], matrix: NDArray[np.float64]) -> float:
    """The least distance between two of the colours."""
    seen = [lab(colour, matrix) for colour in colours]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2))


@pytest.mark.parametrize("kind", BLIND)
def test_colours_of_figures_are_told_apart_whoever_looks(kind: str) -> None:
    assert nearest(COLOURS, BLIND[kind]) > CLEARLY


def test_colours_that_only_some_can_tell_apart_would_be_found() -> None:
    red, green = "#b04020", "#6f6a10"
    assert nearest((red, green), BLIND["nobody"]) > 30 > CLEARLY * 2 > nearest((red, green), BLIND["green"])
