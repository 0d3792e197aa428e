"""A table that is dropped stays in its folder and within its bounds; nothing in it becomes markup or a path."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.report.documents import rehearsal, release
from tests.waiting import until
from tests.web.pages import Browser, opened, ours

from dovetail.cli.main import invoke
from dovetail.collect import http as bodies
from dovetail.collect import http as limits
from dovetail.core.errors import ConfigError, DataError
from dovetail.web import jobs
from dovetail.web import uploads as upload
from dovetail.web.access import Session
from dovetail.web.jobs import work
from dovetail.web.reader import checked_config, compare, read_report
from dovetail.web.uploads import MOST_TABLES, OpenedTable, Shelf, safe_name

EVIL = '"><script>alert(1)</script>'
SURVEY = "affair,age,name\n" + "".join(f"{'yes' if i % 3 else 'no'},{20 + i % 9},p{i}\n" for i in range(60))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Browser, Session]]:
    with opened(tmp_path) as made:
        yield made


def drop(site: tuple[Browser, Session], text: str, name: str = "survey.csv") -> str:
    """The address of the page of a table that was dropped."""
    browser, session = site
    answer = browser.post(f"/read/open?name={quote(name)}", content=text.encode(), headers=ours(session))
    assert answer.status_code == 200, answer.text
    return str(answer.json()["next"])


def test_a_table_is_shown_with_its_problems_and_leads_to_a_configuration(site: tuple[Browser, Session]) -> None:
    browser, session = site
    place = drop(site, SURVEY)
    first = browser.get(place).text
    assert "60 rows, 3 columns" in first and "Choose the private column" in first and "3. Rehearse" not in first
    query = urlencode({"private": "affair", "public": "age", "epsilon": "1.5"})
    page = unescape(browser.get(f"{place}?{query}").text)
    assert "the 2 categories were read off the private column" in page and 'private = "affair"' in page
    config = browser.get(f"{place}/survey.toml?{query}").text
    assert 'path = "survey.csv"' in config and 'public = ["age"]' in config and "epsilon = 1.5" in config
    assert session.folder.name not in page + config


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("private=gone", "has no column 'gone'"),
        ("private=affair&lower=1", "“Least number” and “Largest number” are declared together"),
        ("private=affair&lower=2&upper=1", "must be below"),
        ("private=affair&epsilon=x", "“Local epsilon” must be a number"),
        ("private=affair&person=affair", "cannot both be private"),
        ("private=affair&categories=a", "at least two"),
    ],
)
def test_what_does_not_go_together_is_one_line(site: tuple[Browser, Session], query: str, said: str) -> None:
    answer = site[0].get(f"{drop(site, SURVEY)}?{query}")
    assert answer.status_code == 400 and said in unescape(answer.text) and "Traceback" not in answer.text


UGLY = "id,answer,hours\n" + "".join(
    f"{i},{('ja', 'Ja', 'nein', 'vielleicht')[i % 4]},{'' if i % 9 == 0 else i % 7}\n" for i in (*range(80), 5)
)


def buttons(page: str) -> dict[str, str]:
    """What each button decides, by its words."""
    found = re.findall(r'name="set" value="([^"]*)">([^<]*)</button>', page)
    return {words: unescape(value) for value, words in found}


@pytest.mark.exhaust
def test_a_remedy_is_a_button_and_stays_decided(site: tuple[Browser, Session]) -> None:
    place, asked = drop(site, UGLY), {"private": "hours", "lower": "0", "upper": "9", "person": "id"}
    found = buttons(site[0].get(f"{place}?{urlencode(asked)}").text)
    assert {"leave these people out"} <= found.keys()
    decided = urlencode([*asked.items(), ("set", found["leave these people out"]), ("set", "")])
    page = unescape(site[0].get(f"{place}?{decided}").text)
    assert "a mean has no category for them" not in page and 'missing = "drop"  #' in page
    assert 'name="set" value="missing = "drop"" checked' in page and 'duplicates = "first"' in page
    bad = site[0].get(f"{place}?{urlencode([*asked.items(), ('set', 'missing = ')])}")
    assert bad.status_code == 400 and "must be a line of TOML" in unescape(bad.text)


@pytest.mark.exhaust
def test_spellings_are_read_as_the_answers_that_a_person_chooses(site: tuple[Browser, Session]) -> None:
    place, asked = drop(site, UGLY), {"private": "answer", "categories": "ja,nein", "person": "id"}
    page = site[0].get(f"{place}?{urlencode(asked)}").text
    lines = [unescape(line) for line in re.findall(r'<option value="(labels[^"]*)">', page)]
    assert lines == [f'labels."answer"."vielleicht" = "{means}"' for means in ("ja", "nein", "")]
    decided = unescape(site[0].get(f"{place}?{urlencode([*asked.items(), ('set', lines[1])])}").text)
    assert "not among the declared categories" not in decided and '"vielleicht" = "nein"' in decided


def test_names_and_labels_of_a_table_are_escaped(site: tuple[Browser, Session]) -> None:
    quoted = EVIL.replace('"', '""')
    table = f'"{quoted}",b\n' + f'"{quoted}",1\nx,2\n' * 30
    place = drop(site, table, name=f"{EVIL}.csv")
    for query in ("", "?private=b", "?" + urlencode({"private": EVIL, "public": "b", "categories": f"{EVIL},x"})):
        page = site[0].get(place + query).text
        assert "<script>alert" not in page and "&lt;script&gt;alert" in page


@pytest.mark.parametrize(
    "name", ["../../evil.csv", "/etc/passwd", "..\\..\\x.parquet", "", ".", "..", "a\0b.csv", "-rf.csv"]
)
def test_no_name_leads_out_of_the_folder(name: str, tmp_path: Path) -> None:
    safe = safe_name(name)
    assert Path(safe).name == safe and not safe.startswith((".", "-"))
    assert (tmp_path / safe).resolve().parent == tmp_path.resolve()


def test_files_lie_in_the_folder_of_the_session_alone_and_go(site: tuple[Browser, Session]) -> None:
    browser, session = site
    place = drop(site, SURVEY, name="../../../../tmp/evil.csv")
    folder = session.folder / place.rpartition("/")[2]
    assert [path.name for path in folder.iterdir()] == ["evil.csv"]
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert browser.post(f"{place}/close", headers=ours(session)).headers["hx-redirect"] == "/read"
    assert not folder.exists() and browser.get(place).status_code == 404
    for _ in range(MOST_TABLES + 2):
        drop(site, SURVEY)
    assert len(list(session.folder.iterdir())) == MOST_TABLES


@pytest.mark.parametrize(
    "path", ["/read/../../etc/passwd", "/read/%2e%2e%2fx", "/jobs/%2e%2e", "/reports/%00", "/static/../app.py"]
)
def test_no_address_leads_out_of_the_folder(site: tuple[Browser, Session], path: str) -> None:
    answer = site[0].get(path)
    assert answer.status_code == 404 and "root:" not in answer.text


@pytest.mark.parametrize("text", ["", "\n", "a,b\n", "PAR1", "\0\0\0"])
def test_what_is_no_table_leaves_nothing(site: tuple[Browser, Session], text: str) -> None:
    browser, session = site
    answer = browser.post("/read/open?name=x.parquet", content=text.encode(), headers=ours(session))
    assert (
        answer.status_code == 400 and session.folder.name not in answer.text and "\n" not in answer.json()["detail"]
    )
    assert list(session.folder.iterdir()) == []


def test_a_huge_body_is_refused_and_leaves_nothing(
    site: tuple[Browser, Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, session = site
    declared = ours(session) | {"Content-Length": str(upload.MOST_TABLE + 1)}
    assert browser.post("/read/open?name=x.csv", content=b"", headers=declared).status_code == 413
    monkeypatch.setattr(upload.save, "__defaults__", (1000,))

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    assert browser.post("/read/open?name=x.csv", content=pieces(), headers=ours(session)).status_code == 413
    assert browser.post("/compare/open", content=b"", headers=declared).status_code == 413
    assert list(session.folder.iterdir()) == []


def test_answers_that_hold_commas_are_declared_in_quotes(site: tuple[Browser, Session]) -> None:
    place = drop(site, "a,b\n" + '"once, maybe",1\nnever,2\n' * 30)
    page = site[0].get(f"{place}/survey.toml?" + urlencode({"private": "a", "categories": '"once, maybe", never'}))
    assert 'categories = ["once, maybe", "never"]' in page.text


def test_a_slow_body_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        headers: dict[str, str] = {}  # noqa: RUF012

        async def stream(self) -> AsyncIterator[bytes]:
            yield b"x"
            await asyncio.Event().wait()

    monkeypatch.setattr(upload, "LONGEST", 0.01)
    with pytest.raises(bodies.Refusal, match="did not arrive"):
        asyncio.run(upload.save(Slow(), tmp_path / "x.csv"))  # type: ignore[arg-type]
    assert not (tmp_path / "x.csv").exists() and limits.SLOWEST > 1 << 10


CONFIG = """schema_version = 1
mode = "rehearsal"
[data]
path = "survey.csv"
private = "affair"
categories = ["no", "yes"]
[randomize]
randomizer = "krr"
epsilon = 1.0
"""


def table_in(folder: Path) -> OpenedTable:
    (folder / "survey.csv").write_text(SURVEY)
    return OpenedTable("survey.csv", folder, "0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"survey.csv"', '"/etc/passwd"', r"\[data\] path must be"),
        ('"survey.csv"', '"../other/survey.csv"', r"\[data\] path must be"),
        ('"rehearsal"', '"release"', "rehearses only"),
        ("epsilon = 1.0", "epsilon = 1.0\n[shuffle]\nsaved = 1", "saved"),
        ("schema_version = 1", "schema_version = ", "no TOML"),
        ("schema_version = 1", "x = 1", "x"),
    ],
)
def test_only_a_rehearsal_of_this_table_is_run(tmp_path: Path, old: str, new: str, said: str) -> None:
    table = table_in(tmp_path)
    assert checked_config(urlencode({"config": CONFIG}).encode(), table) == CONFIG
    with pytest.raises(ConfigError, match=said):
        checked_config(urlencode({"config": CONFIG.replace(old, new)}).encode(), table)


SEVERAL = """schema_version = 1
mode = "rehearsal"
ask = "one"
[data]
path = "survey.csv"
[[questions]]
column = "affair"
categories = ["no", "yes"]
randomizer = "krr"
epsilon = 1.0
[[questions]]
column = "age"
lower = 0
upper = 100
randomizer = "window"
epsilon = 1.0
"""


@pytest.mark.exhaust
def test_several_questions_are_rehearsed_on_this_table_alone(tmp_path: Path) -> None:
    table = table_in(tmp_path)
    told = checked_config(urlencode({"config": SEVERAL}).encode(), table)
    (tmp_path / "survey.toml").write_text(told)
    assert work(tmp_path / "survey.toml", tmp_path / "out") == {"finished": True}
    with pytest.raises(ConfigError, match=r"\[data\] path must be"):
        checked_config(urlencode({"config": SEVERAL.replace("survey.csv", "../survey.csv")}).encode(), table)
    with pytest.raises(ConfigError, match="rehearses only"):
        checked_config(urlencode({"config": SEVERAL.replace("rehearsal", "release")}).encode(), table)


@pytest.mark.parametrize("body", [b"", b"\xff", b"a=b", b"config=a&config=b", b"%", b"config=" + b"[" * 5000])
def test_what_is_no_form_is_refused(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(ConfigError):
        checked_config(body, table_in(tmp_path))


@pytest.mark.exhaust
def test_a_rehearsal_runs_in_a_process_of_its_own_and_its_report_can_be_read(site: tuple[Browser, Session]) -> None:
    browser, session = site
    form = {"config": CONFIG.replace("categories", "public = ['age']\ncategories")}
    started = browser.post(f"{drop(site, SURVEY)}/rehearse", data=form, headers=ours(session))
    place = started.headers["hx-redirect"]
    assert until(lambda: "The rehearsal is done" in browser.get(f"{place}/state").text)
    report = browser.get(place.replace("/jobs/", "/reports/"))
    assert "Five ways to look at the privacy" in report.text and "style-src 'sha256-" in report.headers[
        "content-security-policy"
    ]  # fmt: skip
    assert browser.get(place.replace("/jobs/", "/reports/") + "/report.json").json()["collection"]["n"] == 60


def asleep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals that begin and do not end."""
    program = tmp_path / "asleep"
    program.write_text('#!/bin/sh\necho \'{"step": "asleep", "done": 1, "total": 3}\'\nexec sleep 600\n')
    program.chmod(0o700)
    monkeypatch.setattr(jobs.sys, "executable", str(program))


def test_one_rehearsal_runs_at_a_time_and_each_can_be_cancelled(
    site: tuple[Browser, Session],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    browser, session = site
    asleep(tmp_path_factory.mktemp("bin"), monkeypatch)
    place = drop(site, SURVEY)

    def start() -> Any:
        return browser.post(f"{place}/rehearse", data={"config": CONFIG}, headers=ours(session))

    first, second = (start().headers["hx-redirect"] for _ in range(2))
    assert until(lambda: "asleep: 1 of 3" in browser.get(f"{first}/state").text)
    assert "Waiting" in browser.get(f"{second}/state").text
    assert "Cancelled" in browser.post(f"{first}/cancel", headers=ours(session)).text
    assert until(lambda: "asleep: 1 of 3" in browser.get(f"{second}/state").text)
    for _ in range(jobs.MOST_WAITING):
        assert "hx-redirect" in start().headers
    assert "rehearsals wait already" in start().text
    assert browser.post(f"{place}/close", headers=ours(session)).status_code == 200
    assert "Cancelled" in browser.get(f"{second}/state").text


def test_the_work_says_what_is_wrong_and_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "survey.toml"
    config.write_text(CONFIG.replace("affair", "gone"))
    table_in(tmp_path)
    assert "gone" in work(config, tmp_path / "report")["failed"]
    assert all(json.loads(line)["total"] for line in capsys.readouterr().out.splitlines())
    assert not (tmp_path / "report").exists()


def test_two_reports_are_compared_line_by_line() -> None:
    before, after = rehearsal(), release()
    after["config"] = {**before["config"], "mode": "release", "randomize": {"epsilon": 9.0}}
    found = compare(before, after)
    facts = {fact.name: fact for fact in found.facts}
    assert facts["mode"].before == "rehearsal" and facts["mode"].after == "release" and facts["mode"].changed
    assert not facts["people"].changed and facts["central ε"].before.startswith("0.")
    assert {"Protection of one person", "Trusting nobody", "Public", "What to do"} <= set(facts)
    assert ("rehearsal or release", '"release"') in {(fact.name, fact.after) for fact in found.settings}
    assert all(0.0 <= share <= 1.0 for fact in found.estimates for share in fact.bars or (2.0,))
    assert all(fact.changed for fact in found.settings)
    assert not any(fact.changed for fact in (*compare(before, before).facts, *compare(before, before).estimates))


RUNS = {
    "plain": '[randomize]\nrandomizer = "krr"\nepsilon = 1.0',
    "dummies": '[promise]\ntrust = "shuffler"\nepsilon = 1.0\ndelta = 1e-6',
    "people": '[promise]\ntrust = "users"\nepsilon = 1.0\ndelta = 1e-6',
    "strings": '[strings]\nlevels = 2\nepsilon = 1.0\ndelta = 1e-6\ntrust = "shuffler"',
}


@pytest.mark.exhaust
def test_every_kind_of_run_can_be_opened_and_compared_also_once_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents: dict[str, Any] = {}
    rows = "".join(f"p{i},{'yes' if i % 4 else 'no'}\n" for i in range(600))
    (tmp_path / "t.csv").write_text(f"id,word\n{rows}")
    for kind, what in RUNS.items():
        categories = "" if kind == "strings" else 'categories = ["no", "yes"]\n'
        for mode in ("rehearsal", "release"):
            monkeypatch.setenv("DOVETAIL_LEDGER", str(tmp_path / f"ledger-{kind}-{mode}"))
            data = f'[data]\npath = "t.csv"\nperson = "id"\nprivate = "word"\nmissing = "refuse"\n{categories}'
            (tmp_path / "run.toml").write_text(f'schema_version = 1\nmode = "{mode}"\n{data}{what}\n')
            assert invoke(["run", str(tmp_path / "run.toml"), "--out", str(tmp_path / f"{kind}-{mode}")]) == 0
            name = f"{kind} {mode}"
            documents[name] = read_report((tmp_path / f"{kind}-{mode}" / "report.json").read_bytes(), name)
    for document in documents.values():
        facts = {fact.name: fact for fact in compare(documents["plain rehearsal"], document).facts}
        assert facts["people"].before == facts["people"].after == "600"
    found = compare(documents["plain release"], documents["dummies release"])
    facts = {fact.name: fact for fact in found.facts}
    assert (facts["noise made by"].before, facts["noise made by"].after) == ("every person alone", "the shuffler")
    assert (facts["local ε"].before, facts["local ε"].after) == ("1", "∞")
    assert {fact.name for fact in compare(documents["strings release"], documents["strings release"]).estimates}


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", "nonsense", '{"mode": "rehearsal"}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}", "\ud800"],
)
def test_what_is_no_report_is_refused_in_a_line(text: str) -> None:
    with pytest.raises(DataError, match=r"x\.json: ") as refused:
        read_report(text.encode("utf-8", "surrogatepass"), "x.json")
    assert "\n" not in str(refused.value)


def poisoned(value: Any) -> Any:
    """The same document with every text that is not read by the program replaced by markup."""
    kept = {"mode", "kind", "measure", "name", "shuffler", "trust", "method", "prior_law", "entropy", "attack"}
    if isinstance(value, dict):
        return {key: part if key in kept else poisoned(part) for key, part in value.items()}
    if isinstance(value, list):
        return [poisoned(part) for part in value]
    return EVIL if isinstance(value, str) and value not in ("inf", "-inf", "nan") else value


def test_a_hostile_report_runs_nothing(site: tuple[Browser, Session]) -> None:
    browser, session = site
    text = json.dumps(poisoned(rehearsal()))
    name = quote(f"{EVIL}.json")
    first, second = (browser.post(f"/compare/open?name={name}", content=text, headers=ours(session)) for _ in "ab")
    assert first.status_code == second.status_code == 200, first.text
    page = browser.get(second.json()["next"]).text
    id = second.json()["next"].rpartition("=")[2]
    report = browser.get(f"/reports/{id}")
    for shown in (page, report.text):
        assert "<script>alert" not in shown and "&lt;script&gt;alert" in shown
    assert "script-src" not in report.headers["content-security-policy"]
    assert "default-src 'none'" in report.headers["content-security-policy"]


def test_the_shelf_keeps_the_latest() -> None:
    shelf: Shelf[int] = Shelf(2)
    assert [shelf.put(str(place), place) for place in range(4)] == [[], [], [0], [1]]
    assert shelf.all() == [2, 3] and os.sep not in safe_name("a/b")
