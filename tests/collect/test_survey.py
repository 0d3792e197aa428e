"""A survey that anybody hosts: its folder, its invitations, its page in a real browser, up to what is counted."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.browser import needs_chromium
from tests.collect.servers import free_port, serving
from tests.node import CLIENT, ESBUILD, needs_client
from tests.waiting import PATIENCE, until
from typer.testing import CliRunner

from dovetail.cli.survey import app
from dovetail.collect.campaign.roster import Roster
from dovetail.collect.files import load_keys
from dovetail.collect.issuer.issuer_config import assemble, load
from dovetail.collect.relay import relay_app
from dovetail.collect.shuffler.shuffler_config import load as shuffler_config
from dovetail.collect.survey.desk import desk_app
from dovetail.collect.survey.folder import LANGUAGES, NewSurvey, Places, Survey, sent_to
from dovetail.collect.survey.invitations import Invitations, link, save_links
from dovetail.collect.survey.page import WORDS, build_page, odds_factor, sent_of_hundred, words
from dovetail.collect.survey.qr import modules
from dovetail.core.errors import ConfigError, DataError, OutputError
from dovetail_protocol.campaign import sign
from dovetail_protocol.keys import OpeningKey, SigningKey
from dovetail_protocol.messages import longest_request
from dovetail_protocol.ohttp import GatewayKey

PAGE = Path("src/dovetail/collect/survey/page/survey.js")
QUIET = ["--no-sandbox", "--disable-gpu"]
QUESTIONS = (("How do you come to work?", ("on foot", "bike", "car")), ("At night?", ("yes", "no </script>")))
NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = [SigningKey(bytes([place]) * 32).verifying_key() for place in range(1, 4)]


def new(**more: Any) -> NewSurvey:
    return NewSurvey(title="Work & <way>", questions=QUESTIONS, epsilon=1.5, minimum=2, days=1.0, **more)


@pytest.fixture
def survey(tmp_path: Path) -> Survey:
    new().write(tmp_path / "survey", start=NOW)
    return Survey.load(tmp_path / "survey")


# --- the folder ----------------------------------------------------------------------------------------------------


def test_a_survey_is_a_signed_campaign_for_each_question_and_says_who_holds_the_keys(survey: Survey) -> None:
    assert [each.categories for each in survey.campaigns] == [answers for _, answers in QUESTIONS]
    assert [each.promise.authentication for each in survey.campaigns] == ["roster"] * 2
    assert survey.operators == "one" and [each.promise.assumed_honest for each in survey.campaigns] == [1, 1]
    assert all(path.stat().st_mode & 0o077 == 0 for path in survey.folder.glob("*.key"))
    assert (survey.folder / "token").stat().st_mode & 0o077 == 0


def test_with_another_operators_analyzer_its_key_is_not_in_the_folder(tmp_path: Path) -> None:
    key = OpeningKey.generate().sealing_key()
    new(analyzer=key, access="open").write(tmp_path / "s", start=NOW)
    found = Survey.load(tmp_path / "s")
    assert found.operators == "two" and not (tmp_path / "s" / "analyzer.key").exists()
    assert found.campaigns[0].analyzer == key and found.campaigns[0].promise.assumed_honest is None
    assert found.campaigns[0].promise.authentication == "none" and not (tmp_path / "s" / "roster.csv").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": " "}, "title"),
        ({"questions": ()}, "at least one question"),
        ({"questions": (("Q", ("a", "a")),)}, "different answers"),
        ({"questions": (("Q", ("a",)),)}, "2 to 20"),
        ({"epsilon": 5.5}, "at most 5"),
        ({"epsilon": 2.6, "together": True}, "cost 5.2: a device gives at most 5 for one question or report"),
        ({"questions": QUESTIONS[:1], "together": True}, "answers to 2 to 16 questions, not 1"),
        ({"questions": QUESTIONS * 4}, "cost 12"),
        ({"epsilon": 0.0}, "`epsilon`"),
        ({"minimum": 1}, "`minimum`"),
        ({"language": "dee"}, "did you mean 'de'"),
    ],
)
def test_a_survey_that_nobody_could_answer_is_refused(changes: dict[str, Any], said: str) -> None:
    asked = {"title": "T", "questions": QUESTIONS, "epsilon": 1.5, "minimum": 2, "days": 1.0}
    with pytest.raises((ConfigError, ValueError), match=said):
        NewSurvey(**asked | changes)


def test_the_page_has_an_address_of_its_own() -> None:
    with pytest.raises(ConfigError, match="addresses of their own"):
        Places(page="https://a.example", analyzer="https://a.example")


def test_with_tokens_the_shuffler_has_no_list_and_each_question_a_key_of_its_own(tmp_path: Path) -> None:
    new(access="tokens").write(tmp_path / "s", start=NOW)
    found = Survey.load(tmp_path / "s")
    sold = [each.tokens.keys for each in found.campaigns if each.tokens]
    assert [each.promise.authentication for each in found.campaigns] == ["token"] * 2 and len(set(sold)) == 2
    assert all(each.tokens and each.tokens.signing for each in found.campaigns)
    assert not (found.folder / "roster.csv").exists() and "roster" not in (found.folder / "shuffler.toml").read_text()
    issuer = assemble(load(found.folder / "issuer.toml"), found.folder)
    assert list(issuer.keys_here().values()) == [[1], [1]] and issuer.entitled.kind == "invitations"
    issuer.store.close()
    connect = re.findall(r"connect-src ([^;]*);", build_page(found))[0].split()
    assert connect == [found.page, found.campaigns[0].endpoints["http"], "http://127.0.0.1:8404"]
    path = found.folder / "survey.toml"
    path.write_text(path.read_text().replace('access = "tokens"', 'access = "invitations"'))
    with pytest.raises(ConfigError, match="and nowhere else"):
        Survey.load(found.folder)
    refused = CliRunner().invoke(app, ["new", "x", *TITLE, *ASKED, "--open", "--tokens"])
    assert "--open and --tokens" in str(refused.exception)


def test_all_answers_of_a_person_may_be_one_report_whose_questions_are_signed(tmp_path: Path) -> None:
    new(together=True, access="tokens").write(tmp_path / "s", start=NOW)
    found = Survey.load(tmp_path / "s")
    (made,) = found.campaigns
    assert made.question == found.title and made.promise.device_budget == made.charged == 3.0
    assert made.tokens is not None and len(made.tokens.keys) == 1
    data = json.loads(re.findall(r'id="data">(.*?)</script>', build_page(found), re.S)[0])
    assert [each["campaign"] for each in data["questions"]] == [0, 0]
    assert [(each["question"], tuple(each["answers"])) for each in data["questions"]] == list(QUESTIONS)
    assert [each["part"] for each in data["questions"]] == [0, 1] and data["factor"] == "20.1"
    changed = made.signed.replace(b"At night?", b"By night?")
    (found.folder / "question-1.toml").write_bytes(changed)
    with pytest.raises(ConfigError, match="changed since its owner signed"):
        Survey.load(found.folder)


def test_a_page_asks_nothing_but_questions_with_named_answers(tmp_path: Path) -> None:
    new(together=True).write(tmp_path / "s", start=NOW)
    path, owner = tmp_path / "s" / "question-1.toml", load_keys(tmp_path / "s" / "owner.key", "owner")
    body = path.read_text().replace('categories = ["yes", "no </script>"]', "lower = 0.0\nupper = 1.0")
    place = body.rindex('rounding = "list"')
    body = body[:place] + body[place:].replace('"list"', '"even"', 1)
    assert owner.signing is not None
    path.write_bytes(sign(body.encode(), owner.signing))
    with pytest.raises(ConfigError, match="a page asks questions with named answers"):
        Survey.load(tmp_path / "s")


def test_by_a_relay_a_page_speaks_to_the_relay_and_never_to_the_shuffler(tmp_path: Path) -> None:
    new(places=Places(relay="https://relay.example.org")).write(tmp_path / "s", start=NOW)
    found = Survey.load(tmp_path / "s")
    routes = [each.ohttp for each in found.campaigns]
    assert {route.relay for route in routes if route} == {"https://relay.example.org"} and not found.campaigns[
        0
    ].endpoints
    connect = re.findall(r"connect-src ([^;]*);", build_page(found))[0].split()
    assert connect == [found.page, "https://relay.example.org"]
    for each, route in zip(found.campaigns, routes, strict=True):
        assert route and 0 <= route.pad - longest_request(each) < 64, "every request has one length"
    key = load_keys(found.folder / "gateway.key", "gateway").opening
    assert key and all(route and route.keys == (GatewayKey.of(key),) for route in routes)
    assert shuffler_config(found.folder / "shuffler.toml").gateway == ["gateway.key"]
    with pytest.raises(ConfigError, match="relay need addresses"):
        Places(relay=Places().shuffler)


def test_an_existing_folder_and_a_folder_that_is_none_are_refused(survey: Survey, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists"):
        new().write(survey.folder, start=NOW)
    with pytest.raises(ConfigError, match="survey new"):
        Survey.load(tmp_path)
    path = survey.folder / "survey.toml"
    path.write_text(path.read_text().replace('access = "invitations"', 'access = "all"'))
    with pytest.raises(ConfigError, match="open, invitations"):
        Survey.load(survey.folder)


# --- invitations ---------------------------------------------------------------------------------------------------


def test_an_invitation_is_good_for_one_device_and_asking_again_changes_nothing(survey: Survey) -> None:
    made = Invitations.load(survey.folder)
    one, other = made.invite(2)
    assert made.enrol("x" * 22, KEYS[0]) == "unknown"
    assert [made.enrol(one, KEYS[0]) for _ in range(2)] == ["enrolled"] * 2
    again = Invitations.load(survey.folder)
    assert again.enrol(one, KEYS[1]) == "used" and again.enrol(other, KEYS[1]) == "enrolled"
    assert [entry.device for entry in Roster.load(survey.folder / "roster.csv")] == KEYS[:2]
    assert not any(code in path.read_text() for path in survey.folder.glob("*.csv") for code in (one, other))


def test_after_a_crash_between_roster_and_invitation_the_device_enrols_again(survey: Survey) -> None:
    made = Invitations.load(survey.folder)
    (code,) = made.invite(1)
    Roster.load(survey.folder / "roster.csv").with_devices(KEYS[:1]).save(survey.folder / "roster.csv")
    assert made.enrol(code, KEYS[0]) == "enrolled" and len(Roster.load(survey.folder / "roster.csv")) == 1


def test_links_carry_their_code_where_no_server_sees_it_and_are_a_secret(survey: Survey, tmp_path: Path) -> None:
    codes = Invitations.load(survey.folder).invite(3)
    save_links(survey, codes, tmp_path / "links.html")
    assert all(f"{survey.page}/#i={code}" == link(survey, code) for code in codes)
    page = (tmp_path / "links.html").read_text()
    assert all(code in page for code in codes) and page.count("<svg") == 3 and "Work &amp; &lt;way&gt;" in page
    assert (tmp_path / "links.html").stat().st_mode & 0o077 == 0
    with pytest.raises(OutputError, match="exists"):
        save_links(survey, codes, tmp_path / "links.html")


@pytest.mark.parametrize(
    ("text", "side", "digest"),
    [
        ("A", 21, "e7f54841f44718f3"),
        ("http://127.0.0.1:8400/#i=ABCDEFGHIJKLMNOPQRSTUV", 33, "6bedd7c5a98c365d"),
        ("x" * 100, 41, "59b3f53cc04ca642"),
        ("y" * 150, 49, "1bd9c28583407514"),
        ("q" * 213, 57, "efd8380467e0a394"),
    ],
)
def test_qr_codes_are_those_that_a_foreign_reader_has_read(text: str, side: int, digest: str) -> None:
    """jsQR 1.4 has read each of them; they cover one and several blocks, and versions 7 and above."""
    found = modules(text)
    assert len(found) == side
    assert sha256(bytes(dark for row in found for dark in row)).hexdigest()[:16] == digest


def test_a_text_that_no_code_holds_is_refused() -> None:
    with pytest.raises(DataError, match="213 bytes"):
        modules("q" * 214)


def test_the_desk_takes_what_is_an_enrolment_and_nothing_else(survey: Survey) -> None:
    (code,) = Invitations.load(survey.folder).invite(1)
    good = json.dumps({"code": code, "device": str(KEYS[0])}).encode()

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(desk_app(survey))
        async with httpx.AsyncClient(transport=transport, base_url=survey.page) as desk:
            wrong = (b"", b"[]", b"{}", b'{"code": 3, "device": "x"}', good.replace(b"ed25519", b"x25519"))
            told = [await desk.post("/v1/enrol", content=body) for body in wrong]
            told += [await desk.post("/v1/enrol", content=body) for body in (good, good.replace(*_other_key()))]
            return [*told, await desk.get("/")]

    *refused, taken, used, shown = asyncio.run(ask())
    assert [answer.status_code for answer in (*refused, taken, used)] == [403] * 5 + [204, 409]
    assert taken.headers["Access-Control-Allow-Origin"] == "*"
    assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]


def _other_key() -> tuple[bytes, bytes]:
    return str(KEYS[0]).encode(), str(KEYS[1]).encode()


# --- the page ------------------------------------------------------------------------------------------------------


def test_of_a_hundred_people_a_hundred_send_something_and_most_the_truth() -> None:
    for k in range(2, 21):
        rows = sent_of_hundred(k, 2.0)
        assert all(sum(row) == 100 and max(row) == row[own] for own, row in enumerate(rows))


def test_odds_are_rounded_up() -> None:
    assert [odds_factor(Fraction(e)) for e in ("0.1", "1", "4.7", "10")] == ["1.2", "2.8", "110", "23000"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_says_everything_with_the_same_blanks(language: str) -> None:
    blanks = {name: set(re.findall(r"\{\w+\}", said)) for name, said in words(language).items()}
    assert blanks == {name: set(re.findall(r"\{\w+\}", said)) for name, said in words("en").items()}
    script = (CLIENT / "src" / "survey.ts").read_text()
    assert all(name.partition("_")[0] in script for name in WORDS if name != "noscript")


def test_the_page_names_its_script_and_style_by_hash_and_loads_nothing(survey: Survey) -> None:
    page = build_page(survey)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0]
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
        assert f"{tag}-src 'sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    assert f"connect-src {survey.page} {survey.campaigns[0].endpoints['http']}; " in policy
    assert not re.findall(r"<(?:link|img|iframe|script src|base|form action)\b", page)
    assert "Work &amp; &lt;way&gt;" in page and "no </script>" not in page
    data = json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[0])
    assert [each.encode() for each in data["campaigns"]] == [each.signed for each in survey.campaigns]
    assert [[each["campaign"], each["part"]] for each in data["questions"]] == [[0, 0], [1, 0]]
    assert data["factor"] == "20.1" and data["questions"][0]["factor"] == "4.5"


@needs_client
def test_the_script_in_the_package_is_what_the_sources_make(tmp_path: Path) -> None:
    made = tmp_path / "survey.js"
    command = [ESBUILD, "src/survey.ts", "--bundle", "--minify", "--format=iife"]
    subprocess.run([*command, "--target=es2022", "--log-level=warning", f"--outfile={made}"], cwd=CLIENT, check=True)
    assert made.read_bytes() == PAGE.read_bytes(), "npm run bundle in clients/typescript writes it anew"


# --- in a browser --------------------------------------------------------------------------------------------------


@dataclass
class Site:
    """A survey that runs: links of invitations, and where it is."""

    folder: Path
    links: list[str]
    survey: Survey


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Page, shuffler and analyzer as `dovetail survey run` starts them."""
    with running(tmp_path_factory.mktemp("survey") / "it", "--close-at", "4") as found:
        yield found


TITLE = ["--title", "Work & <way>"]
ASKED = [part for question, answers in QUESTIONS for part in ("--question", question, "--answers", "|".join(answers))]


@contextmanager
def running(folder: Path, *more: str) -> Iterator[Site]:
    """A survey of these options whose servers run."""
    places = [f"http://127.0.0.1:{free_port()}" for _ in range(4)]
    roles = ("--page", "--shuffler", "--analyzer", "--issuer")
    options = [part for pair in zip(roles, places, strict=True) for part in pair]
    runner = CliRunner()
    for words_ in (
        ["new", str(folder), *TITLE, *ASKED, "--minimum", "2", *options, *more],
        ["invite", str(folder), "--count", "9", "--out", str(folder / "links.html")],
        ["build", str(folder), "--out", str(folder / "index.html")],
    ):
        done = runner.invoke(app, words_)
        assert done.exit_code == 0, done.output
    assert (folder / "index.html").read_text() == build_page(Survey.load(folder))
    command = [sys.executable, "-m", "dovetail", "survey", "run", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(5 if "--tokens" in more else 4)]
        assert told[-2].startswith("One operator runs everything") and told[-1] == f"page: {places[0]}\n"
        links = re.findall(r"<code>(.*?)</code>", (folder / "links.html").read_text())
        yield Site(folder, links, Survey.load(folder))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra test")
    with sync_api.sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(program: Any) -> Iterator[Any]:
    started = program.chromium.launch(executable_path=shutil.which("chromium"), args=QUIET)
    yield started
    started.close()


def opened(browser: Any, site: Site, link: str, **more: Any) -> tuple[Any, Any, list[str]]:
    """A fresh browser at this link; whatever is asked of another host, or blocked by the policy, is listed."""
    context = browser.new_context(**{"viewport": {"width": 375, "height": 800}} | more)
    context.set_default_timeout(PATIENCE * 1000)
    page, wrong = context.new_page(), list[str]()
    rule = site.survey.campaigns[0].tokens
    known = (site.survey.page, sent_to(site.survey.campaigns[0]), *([rule.url] if rule else []))
    context.on("request", lambda asked: None if asked.url.startswith(known) else wrong.append(asked.url))
    page.on("console", lambda said: wrong.append(said.text) if "Security Policy" in said.text else None)
    page.goto(link)
    return context, page, wrong


def answer(page: Any) -> None:
    page.get_by_label("bike").check()
    page.get_by_label("yes").check()
    page.get_by_label("I have read").check()
    page.get_by_role("button", name="Send").click()


def says(page: Any, text: str) -> None:
    page.get_by_role("status").get_by_text(text).wait_for()


MEMORY = """() => new Promise((done) => {
  const opening = indexedDB.open("dovetail");
  opening.onsuccess = () => {
    const asked = opening.result.transaction("device").objectStore("device").get("memory");
    asked.onsuccess = () => done(Object.values(asked.result.campaigns).map((each) => each.reports[1].plaintext));
  };
})"""


MEMORY_KEPT = """() => new Promise((done) => {
  const opening = indexedDB.open("dovetail");
  opening.onsuccess = () => {
    const asked = opening.result.transaction("device").objectStore("device").get("memory");
    const reports = () => Object.values(asked.result.campaigns).flatMap((each) => Object.keys(each.reports));
    asked.onsuccess = () => done(reports().length);
  };
})"""


def answer_and_be_killed(program: Any, link: str, profile: Path) -> None:
    """A browser that is killed after drawing sends the same answer when it is back."""

    def start() -> tuple[Any, Any]:
        context = program.chromium.launch_persistent_context(
            str(profile), executable_path=shutil.which("chromium"), args=QUIET
        )
        context.set_default_timeout(PATIENCE * 1000)
        return context, context.new_page()

    context, page = start()
    page.goto(link)
    page.get_by_label("bike").wait_for()
    context.set_offline(True)
    answer(page)
    says(page, "has not arrived yet")
    drawn = page.evaluate(MEMORY)
    assert len(drawn) == 2 and all(drawn)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if str(profile).encode() in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
    with suppress(Exception):  # the browser is gone
        context.close()

    context, page = start()
    context.route("**/v1/*", lambda asked: asked.abort())
    page.goto(link)
    says(page, "has not arrived yet")
    assert page.evaluate(MEMORY) == drawn
    context.unroute("**/v1/*")
    page.reload()
    says(page, "Your answer has arrived.")
    context.close()


@pytest.mark.exhaust
@needs_chromium
def test_people_answer_once_whatever_they_do_and_what_they_send_is_counted(
    site: Site, browser: Any, program: Any, tmp_path: Path
) -> None:
    links = iter(site.links)

    # on a phone, by keyboard hints: nothing is sent before every question and consent, the code leaves the address
    first = next(links)
    context, page, wrong = opened(browser, site, first, color_scheme="dark")
    page.get_by_role("button", name="Send").wait_for()
    assert page.url == f"{site.survey.page}/" and page.evaluate("document.documentElement.scrollWidth") == 375
    page.get_by_role("button", name="Send").click()
    says(page, "Please answer every question.")
    assert page.evaluate("document.activeElement.name") == "q0"
    page.reload()  # in the middle: the invitation stays in the history of this tab
    answer(page)
    says(page, "Your answer has arrived.")
    page.get_by_text("Show what was sent").click()
    assert page.get_by_text("Your answer: bike. Sent:").is_visible()
    page.reload()
    says(page, "This browser has answered.")
    assert page.get_by_role("button", name="Send").count() == 0 and wrong == []
    context.close()

    # the same invitation in another browser
    context, page, wrong = opened(browser, site, first)
    answer(page)
    says(page, "used in another browser")
    assert page.evaluate("indexedDB.databases().then(found => found.length)") == 1 and wrong == []
    context.close()

    # without invitation, and with one that nobody gave out
    context, page, _ = opened(browser, site, site.survey.page)
    says(page, "by invitation")
    page.goto(f"{site.survey.page}/#i={'A' * 22}")
    page.reload()
    answer(page)
    says(page, "is not known here")
    context.close()

    # two tabs at one moment, then both say the same
    context, page, wrong = opened(browser, site, next(links), viewport={"width": 1280, "height": 900})
    code = page.evaluate("history.state.code")
    other = context.new_page()
    other.goto(f"{site.survey.page}/#i={code}")
    other.get_by_label("car").check()
    other.get_by_label("yes").check()
    other.get_by_label("I have read").check()
    page.get_by_label("bike").check()
    page.get_by_label("yes").check()
    page.get_by_label("I have read").check()
    for each in (page, other):
        each.evaluate("setTimeout(() => document.querySelector('button').click(), 50)")
    says(page, "Your answer has arrived.")
    says(other, "Your answer has arrived.")
    for each in (page, other):
        each.get_by_text("Show what was sent").click()
    drawn = [each.get_by_text("Sent:").count() for each in (page, other)]
    assert sum(drawn) == 2 and wrong == []  # each question was drawn in one of the tabs
    context.close()

    # offline, and back
    context, page, _ = opened(browser, site, next(links))
    page.get_by_label("bike").wait_for()
    context.set_offline(True)
    answer(page)
    says(page, "has not arrived yet")
    context.set_offline(False)
    says(page, "Your answer has arrived.")
    context.close()

    # a clock that is years off: nothing is drawn
    context, page, _ = opened(browser, site, "about:blank")
    page.add_init_script("{ const now = Date.now; Date.now = () => now() + 25 * 365 * 864e5 }")
    page.goto(next(links))
    answer(page)
    says(page, "the clock of this device is wrong")
    context.close()

    # a browser that keeps nothing
    context, page, _ = opened(browser, site, "about:blank")
    page.add_init_script("indexedDB.open = () => { throw new DOMException('no', 'SecurityError') }")
    page.goto(next(links))
    says(page, "This browser keeps no data")
    assert page.get_by_role("button", name="Send").count() == 0
    context.close()

    # one more, and the rounds close on four: results are shown
    answer_and_be_killed(program, next(links), tmp_path / "profile")
    results = browser.new_page()

    def shown() -> bool:
        results.goto(site.survey.analyzer)
        return bool(results.get_by_text("4 valid reports").count() == 2)

    until(shown)


@pytest.mark.exhaust
@needs_chromium
def test_an_invitation_buys_a_token_and_the_shuffler_hears_of_no_invitation(browser: Any, tmp_path: Path) -> None:
    with running(tmp_path / "it", "--tokens", "--close-at", "2") as site:
        first, second = site.links[:2]
        for link in (first, second):
            context, page, wrong = opened(browser, site, link)
            page.get_by_text("is not told which invitation").wait_for()
            answer(page)
            says(page, "Your answer has arrived.")
            page.reload()
            says(page, "This browser has answered.")
            assert wrong == []
            context.close()
        for link, told in (
            (first, "used in another browser"),
            (f"{site.survey.page}/#i={'A' * 22}", "is not known here"),
            (site.survey.page, "by invitation"),
        ):
            context, page, wrong = opened(browser, site, link)
            answer(page)
            says(page, told)
            assert page.evaluate(MEMORY_KEPT) == 0 and wrong == []
            context.close()
        results = browser.new_page()

        def shown() -> bool:
            results.goto(site.survey.analyzer)
            return bool(results.get_by_text("2 valid reports").count() == 2)

        until(shown)
        assert not (site.folder / "roster.csv").exists()


@pytest.mark.exhaust
@needs_chromium
def test_one_report_with_all_answers_arrives_or_none_does(browser: Any, tmp_path: Path) -> None:
    with running(tmp_path / "it", "--together", "--tokens", "--close-at", "2") as site:
        for link in site.links[:2]:
            context, page, wrong = opened(browser, site, link)
            answer(page)
            says(page, "Your answer has arrived.")
            page.get_by_text("Show what was sent").click()
            told = page.get_by_text("Sent:").all_inner_texts()
            assert len(told) == 2 and "Your answer: bike." in told[0] and "Your answer: yes." in told[1]
            assert [name for _, names in QUESTIONS for name in names if any(f"Sent: {name}." in one for one in told)]
            assert page.evaluate(MEMORY_KEPT) == 1 and wrong == []
            page.reload()
            says(page, "This browser has answered.")
            context.close()
        results = browser.new_page()

        def shown() -> bool:
            results.goto(site.survey.analyzer)
            return bool(results.get_by_text("2 valid reports").count())

        until(shown)
        assert all(results.get_by_text(question).count() for question, _ in QUESTIONS)


@pytest.mark.exhaust
@needs_chromium
def test_people_answer_by_a_relay_and_are_counted(browser: Any, tmp_path: Path) -> None:
    shuffler = f"http://127.0.0.1:{free_port()}"
    with (
        serving(relay_app(f"{shuffler}/ohttp")) as relay,
        running(tmp_path / "it", "--shuffler", shuffler, "--relay", relay, "--close-at", "2") as site,
    ):
        for link in site.links[:2]:
            context, page, wrong = opened(browser, site, link)
            answer(page)
            says(page, "Your answer has arrived.")
            assert wrong == []
            context.close()
        results = browser.new_page()

        def shown() -> bool:
            results.goto(site.survey.analyzer)
            return bool(results.get_by_text("2 valid reports").count() == 2)

        until(shown)


@pytest.mark.exhaust
@needs_chromium
def test_the_page_of_a_file_works_and_axe_finds_nothing(site: Site, tmp_path: Path) -> None:
    from tests.browser import violations

    for dark in (False, True):
        for width in (None, 375):
            assert violations(build_page(site.survey), tmp_path, dark=dark, width=width) == []
