"""The live page: complete in itself, honest in its words, and silent about everything that is not open."""

import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from tests.browser import PHONE, needs_chromium, violations
from tests.collect.analyzer.world import LAPLACE, World, batch, campaign, reports_of, seal
from tests.waiting import PATIENCE

from dovetail.collect.analyzer import live_page as page
from dovetail_protocol.keys import text

GROUPS = '[groups]\nnames = ["north", "south", "<west>"]'


@pytest.fixture(scope="module")
def world() -> World:
    asked = campaign(minimum=20, promise="assumed_dishonest = 2", budget=3.0)
    watts = campaign(LAPLACE, id="watts", minimum=10, more=GROUPS, promise='authentication = "none"')
    world = World((asked, watts))
    for t in (1, 2, 4):
        sealed = seal(asked, reports_of(asked, [0, 1, 2] * 10, str(t)), round=t)
        world.analyzer.receive(batch(asked, [*sealed, sealed[0][:-1] + b"x"], rounds=(t,)))
        named = ["north", "south", "<west>"] * 10
        numbers = seal(watts, reports_of(watts, [20.0, 50.0, 60.0] * 10, str(t)), round=t, groups=named)
        world.analyzer.receive(batch(watts, numbers, rounds=(t,)))
    return world


@pytest.fixture(scope="module")
def html(world: World) -> str:
    return page.render(world.analyzer.all_answers())


def test_the_page_shows_question_rounds_estimates_and_promises(html: str) -> None:
    for wanted in (
        "How do you come to work?",
        "3 batches counted, 90 valid reports",
        "Shares in round 4",
        "“bus” by round",
        "Mean by public group in round 4",
        "If shuffler and analyzer collude",
        "Anybody may send",
        "1 seal",
        "&lt;west&gt;",
    ):
        assert wanted in html, wanted
    assert "<west>" not in html


def test_a_share_is_shown_inside_its_interval() -> None:
    """Twenty reports of one value put its unbiased share at 275 %."""
    world = World((campaign(minimum=20),))
    for t in (1, 2):
        world.analyzer.receive(batch(world.campaign, seal(world.campaign, [0] * 20, round=t), rounds=(t,)))
    document = world.answers.document(world.answers.rounds()[-1])["groups"][0]
    assert max(document["value"]) > 2.5 and min(document["value"]) < -0.5
    text = page.render_body(world.analyzer.all_answers())
    number = r"(-?\d[\d.]*)%"
    shown = [tuple(map(float, one)) for one in re.findall(f"{number}, {number} to {number}", text)]
    assert len(shown) > 4 and max(value for value, _, _ in shown) == 100.0
    assert all(0.0 <= low <= value <= high <= 100.0 for value, low, high in shown), shown


def test_no_share_is_drawn_below_nothing_or_beyond_everything() -> None:
    everybody = {"labels": ["no", "yes"], "possible": [0.9, 0.1], "standard_error": [0.18, 0.18]}
    latest = {"round": 1, "level": 0.95, "n": 20, "measure": "share"}
    beyond, within = (
        page._bars({**latest, "groups": [{**everybody, "interval": ends}]})
        for ends in ([(0.55, 1.25), (-0.25, 0.45)], [(0.8, 1.0), (0.0, 0.2)])
    )
    ticks = re.compile(r'class="tick[^"]*"[^>]*>([^<]*)%<')
    for chart in (beyond.chart, within.chart):
        assert {min(drawn := [float(one) for one in ticks.findall(chart)]), max(drawn)} == {0.0, 100.0}
    assert (page.CUT in beyond.caption, page.CUT in within.caption) == (True, False)


def test_the_page_names_the_rounds_that_no_batch_has_come_of(html: str) -> None:
    assert html.count("No batch has come of round 3: it waits, was dropped or is lost.") == 2
    assert not re.search("No batch has come of round [^3]", html)


def test_the_page_loads_nothing_from_elsewhere(html: str) -> None:
    assert re.findall(r"https?://", html) == []
    assert re.findall(r"""(?:src|href|action|data)\s*=\s*["'](?!data:,)""", html) == []
    assert not re.search(r"@import|url\(|<iframe|<object|<embed|<form", html)
    assert re.findall(r'fetch\("([^"]*)"', html) == ["live"]


def test_the_policy_allows_exactly_the_page_itself(html: str) -> None:
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert f"'sha256-{b64encode(sha256(inside.encode()).digest()).decode()}'" in page.POLICY
    assert not re.search(r"\son\w+=|\sstyle=", html)
    assert "default-src 'none'" in page.POLICY and "unsafe" not in page.POLICY


def test_the_page_claims_nothing_that_does_not_hold_and_names_nobody(world: World, html: str) -> None:
    forbidden = ["anonymous", "anonymiz", "completely", "guaranteed", "100% ", "impossible", "ed25519", "nan", "inf "]
    words = re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL).lower()
    for word in forbidden:
        assert not re.search(rf"\b{word}", words), word
    for asked in world.campaigns:
        for each in world.store.batches(asked.id):
            assert each.id not in html and asked.digest.hex() not in html
    assert text(world.campaigns[0].owner.public) not in html


def test_the_page_is_accessible(html: str) -> None:
    assert '<html lang="en">' in html and 'name="viewport"' in html and 'name="color-scheme"' in html
    charts = re.findall(r"<svg[^>]*>", html)
    assert charts and all('role="img"' in chart and "aria-label=" in chart for chart in charts)
    labels = re.findall(r'aria-labelledby="([^"]*)"', html)
    assert set(labels) == set(re.findall(r'<h[12] id="([^"]*)"', html))
    assert html.count("<caption>") == html.count("<table>")


def test_every_chart_says_in_words_what_it_draws(html: str) -> None:
    said = re.findall(r"<desc>(.*?)</desc>", html)
    assert len(said) == html.count("<svg") > 4
    assert all(re.search(r"[\d.]+%?, -?[\d.,e+]+%? to [\d.,e+]+%?", each) for each in said), said
    assert any("in round 4: bus " in each for each in said) and any("&lt;west&gt; (n = 10)" in each for each in said)


WAITS = 'name = "krr"\nk = 8\nepsilon = 4.0'
ASKS = """
[asks]
question = "distribution"
settings = { bins = 8 }
symbols = [[{ of = ["waits"], rounding = "bins", points = 8, bins = 8 }]]
values = [{ name = "waits", lower = 0.0, upper = 80.0 }]
"""


def test_courses_are_drawn_from_two_rounds_on_and_a_distribution_as_a_curve() -> None:
    """One round is one chart of all numbers, as in the report, and no row of charts with a point each."""
    asked = campaign(WAITS, minimum=20, more=ASKS)
    world = World((asked,))
    for t in (1, 2):
        reports = reports_of(asked, list(range(8)) * 10, f"waits {t}")
        world.analyzer.receive(batch(asked, seal(asked, reports, round=t), rounds=(t,)))
        captions = re.findall("<figcaption>([^<]*)</figcaption>", page.render_body(world.analyzer.all_answers()))
        assert captions[0] == f"Estimates in round {t}"
        assert captions[-1] == f"Share of people below a number, round {t}"
        assert ("“median” by round" in captions) == (t == 2) and len(captions) == (2 if t == 1 else 7)


def test_before_the_first_batch_the_page_says_what_it_waits_for() -> None:
    empty = page.render(World((campaign(),)).analyzer.all_answers())
    assert "No batch has been counted yet" in empty and "<svg" not in empty and "<table>" not in empty


@pytest.mark.exhaust
@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no chromium here")
def test_a_browser_shows_the_page_on_a_phone_without_sideways_scrolling(html: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html)
    frame = '<iframe src="page.html" width="390" height="2000" id="f"></iframe>'
    page_of = "f.contentDocument.documentElement"
    script = f"<script>onload = () => document.title = {page_of}.scrollWidth - {page_of}.clientWidth</script>"
    (tmp_path / "phone.html").write_text(frame + script)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--allow-file-access-from-files", "--virtual-time-budget=2000", "--dump-dom"]
    found = subprocess.run(
        [*command, (tmp_path / "phone.html").as_uri()], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    assert re.findall(r"<title>(.*)</title>", found) == ["0"]


@needs_chromium
@pytest.mark.exhaust
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [None, PHONE])
def test_axe_finds_nothing_in_the_live_page(html: str, width: int | None, dark: bool, tmp_path: Path) -> None:
    assert violations(html, tmp_path, dark=dark, width=width) == []
