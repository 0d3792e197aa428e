"""The walk of a new user in a real browser: a plan, its link, an own table to a report, and two reports compared.

What is asked of another machine, what the browser's policy blocks, and what axe-core finds are failures.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import AXE, NO_AXE, PHONE, needs_chromium
from tests.waiting import PATIENCE, until

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra test")
pytestmark = [needs_chromium, pytest.mark.exhaust]

QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SURVEY = "smokes,region\n" + "".join(
    f"{'yes' if i % 4 else 'no'},{'north' if i % 3 else 'south'}\n" for i in range(400)
)
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOUND = "axe.run().then(r => r.violations.map(v => [v.id, v.impact, v.nodes.map(n => n.html.slice(0, 160))]))"


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link of a server in a process of its own, in an empty folder that stays empty."""
    folder, scratch = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("scratch")
    log = folder.parent / "web.log"
    with log.open("w") as out:
        words = [sys.executable, "-m", "dovetail", "web", "--no-open", "--port", "0"]
        server = subprocess.Popen(
            words, cwd=folder, stdout=out, stderr=out, env={**os.environ, "TMPDIR": str(scratch)}
        )
    try:
        until(lambda: "Ctrl-C" in log.read_text(), alive=lambda: server.poll() is None)
        (found,) = re.findall(r"http\S+", log.read_text())
        yield found
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
    assert list(folder.iterdir()) == [] and list(scratch.iterdir()) == []
    assert "fault" not in log.read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as program:
        started = program.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
        yield started
        started.close()


@pytest.fixture(scope="module")
def cookies(browser: Any, link: str) -> Any:
    """What a browser holds that has opened the link."""
    context = browser.new_context()
    context.new_page().goto(link)
    return context.storage_state()


@pytest.fixture
def page(browser: Any, cookies: Any, link: str) -> Iterator[Any]:
    """A page that may not ask another machine for anything, and whose policy blocks nothing that it needs."""
    root = link.partition("/enter")[0]
    context = browser.new_context(base_url=root, storage_state=cookies, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    made, wrong = context.new_page(), list[str]()
    made.on("request", lambda asked: wrong.append(asked.url) if not asked.url.startswith((root, "data:")) else None)
    made.on("console", lambda told: wrong.append(told.text) if told.type == "error" else None)
    made.on("pageerror", lambda error: wrong.append(str(error)))
    yield made
    context.close()
    assert wrong == []


def test_a_question_is_answered_while_it_is_asked(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Wanted error", exact=True).fill("0.05")
    page.wait_for_url("**error=0.05**")
    page.get_by_role("heading", name="Price of accuracy").wait_for()
    slider = page.get_by_label("People, slider", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**n=12500**")
    link = page.url
    page.goto("/")
    page.goto(link)
    assert page.get_by_label("People", exact=True).input_value() == "12500"
    page.get_by_label("People", exact=True).fill("nobody")
    page.get_by_role("alert").filter(has_text="must be a number").wait_for()
    assert page.get_by_label("People", exact=True).get_attribute("aria-invalid") == "true"


def test_a_plan_is_printed_on_one_page(page: Any, tmp_path: Path) -> None:
    for question in ("", "?question=mean&n=5000&lower=0&upper=100&error=2&honest=0.9&groups=5"):
        page.goto(f"/plan/sheet{question}")
        for size in ("A4", "Letter"):
            page.pdf(path=tmp_path / "plan.pdf", format=size)
            assert len(re.findall(rb"/Type\s*/Page\b", (tmp_path / "plan.pdf").read_bytes())) == 1


def test_an_own_table_becomes_a_report_and_two_reports_are_compared(page: Any, tmp_path: Path) -> None:
    (tmp_path / "survey.csv").write_text(SURVEY)
    page.goto("/read")
    page.get_by_text("It stays on this machine.").wait_for()
    page.get_by_label("Drop a CSV or Parquet file here, or choose one").set_input_files(tmp_path / "survey.csv")
    for epsilon in ("1", "3"):
        page.get_by_label("smokes is private").check()
        page.get_by_label("region is public").check()
        page.get_by_label("Local epsilon").fill(epsilon)
        page.get_by_role("button", name="Check").click()
        page.get_by_text("the 2 categories were read off the private column").wait_for()
        page.get_by_role("button", name="Rehearse").click()
        page.get_by_role("heading", name="The rehearsal is done").wait_for()
        page.get_by_role("link", name="Open the report").click()
        page.get_by_role("heading", name="Five ways to look at the privacy").wait_for()
        page.go_back()
        page.get_by_role("link", name="Back to the table").click()
    page.goto("/compare")
    page.get_by_label("survey.csv, 1, first").check()
    page.get_by_label("survey.csv, 2, second").check()
    page.get_by_role("button", name="Compare").click()
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="the local epsilon of a report"))
    assert row.inner_text().split()[-3:] == ["1.0", "3.0", "yes"]


def test_a_plan_needs_no_script(browser: Any, cookies: Any, link: str) -> None:
    root = link.partition("/enter")[0]
    context = browser.new_context(base_url=root, storage_state=cookies, java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    page.goto("/")
    page.get_by_label("Wanted error", exact=True).fill("0.04")
    page.get_by_role("button", name="Answer").click()
    page.get_by_role("heading", name="Price of accuracy").wait_for()
    assert "error=0.04" in page.url
    context.close()


PAGES = (
    "/", "/?question=mean&n=900&lower=0&upper=9&epsilon=0.5&honest=0.8", "/?n=500&k=9&error=0.01&epsilon=0.1",
    "/?n=3000&k=5&epsilon=1&trust=users", "/participation", "/plan/sheet", "/claim", "/read",
    "/compare",
)  # fmt: skip


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_and_a_phone_shows_everything(
    browser: Any, cookies: Any, link: str, dark: bool, tmp_path: Path
) -> None:
    if AXE not in os.environ:
        pytest.skip(NO_AXE)
    axe, root = Path(os.environ[AXE]).read_text(), link.partition("/enter")[0]
    context = browser.new_context(
        base_url=root, storage_state=cookies, bypass_csp=True, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE * 1000)
    (tmp_path / "survey.csv").write_text(SURVEY)
    page.goto("/read")
    page.get_by_label("Drop a CSV or Parquet file here, or choose one").set_input_files(tmp_path / "survey.csv")
    page.wait_for_url("**/read/*")
    table = page.url
    page.goto(f"{table}?private=smokes&public=region")
    page.get_by_role("button", name="Rehearse").click()
    page.get_by_role("heading", name="The rehearsal is done").wait_for()
    job = page.url
    page.get_by_role("link", name="Open the report").click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Save as JSON").click()
    report = page.url
    saved.value.save_as(tmp_path / "report.json")
    page.goto("/compare")
    page.get_by_label("Drop a report.json here, or choose one").set_input_files(tmp_path / "report.json")
    page.wait_for_url("**b=*")
    for place in (*PAGES, f"{table}?private=smokes&public=region", job, report, page.url):
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(place)
        if page.locator(".more[hx-get]").count():
            page.get_by_role("heading", name="Price of accuracy").wait_for()
        page.evaluate(axe)
        assert page.evaluate(FOUND) == [], place
        page.set_viewport_size({"width": PHONE, "height": 800})
        assert page.evaluate(OVERFLOW) == 0, place
    context.close()
