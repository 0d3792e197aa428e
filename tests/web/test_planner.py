"""The planner in the browser gives the numbers of `dovetail plan`, in words, files and links."""

import json
import re
import tomllib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.waiting import PATIENCE, until
from tests.web.pages import Browser, opened

from dovetail.cli.main import invoke
from dovetail.core.display import upward
from dovetail.core.question import QUESTIONS
from dovetail.plan.explain import absent_curve, dishonest_curve
from dovetail.plan.planner import CollectionPlan, Recommendation, plan_collection
from dovetail.web.questions import START, Ahead, Kept, Plans, Question, likely

SHARES = {"question": "frequency", "n": "20000", "k": "3", "error": "0.05", "honest": "0.8"}
MEAN = {"question": "mean", "n": "3000", "lower": "0", "upper": "100", "epsilon0": "1.5", "randomizer": "laplace"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with opened(tmp_path_factory.mktemp("web")) as (made, _):
        yield made


def by_hand(asked: dict[str, str], capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """What the command line says of the same question."""
    words = [word for name, text in asked.items() for word in (f"--{name}", text)]
    assert invoke(["plan", *words, *more, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


@pytest.mark.exhaust
@pytest.mark.parametrize("asked", [pytest.param(SHARES, marks=pytest.mark.exhaust), MEAN], ids=["shares", "mean"])
def test_the_numbers_are_those_of_the_command_line(
    client: Browser, asked: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = by_hand(asked, capsys, "--out", str(tmp_path / "plan.toml"))
    del told["files"]
    assert client.get("/plan/plan.json", params=asked).json() == told
    toml = client.get("/plan/survey.toml", params=asked).text
    assert toml == (tmp_path / "plan.toml").read_text()
    assert tomllib.loads(toml)["randomize"]["epsilon"] == told["epsilon0"]
    page = unescape(client.get("/plan/answer", params=asked).text)
    for wanted in (upward(told["epsilon"]), upward(told["epsilon0"]), *told["central"]["lines"]):
        assert wanted in page


PAIR = {"lower": "0", "upper": "10", "other_lower": "0", "other_upper": "40"}


@pytest.mark.parametrize(
    "asked",
    [
        {"question": "covariance", "n": "3000", "epsilon0": "2", **PAIR},
        {"question": "covariance", "n": "3000", "epsilon": "1", "trust": "shuffler", "points": "5", **PAIR},
        {"question": "covariance", "n": "3000", "epsilon": "1", "trust": "shuffler", "points": "5", **PAIR}
        | {"rounds": "5", "dummies": "gaussian"},
        pytest.param(
            {
                "question": "regression",
                "lower": "0",
                "upper": "9",
                "others": "age = 0..9, income = 0..15",
                "n": "9000",
            }
            | {"epsilon": "1", "trust": "shuffler"},
            marks=pytest.mark.exhaust,
        ),
    ],
    ids=["local", "shuffler", "rounds", "regression"],
)
def test_any_question_of_the_registry_is_planned_as_on_the_command_line(
    client: Browser, asked: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = {name.replace("_", "-"): text for name, text in asked.items()}
    told = by_hand(words, capsys, "--out", str(tmp_path / "plan.toml"))
    del told["files"]
    assert client.get("/plan/plan.json", params=asked).json() == told
    assert client.get("/plan/survey.toml", params=asked).text == (tmp_path / "plan.toml").read_text()
    for path in ("/plan/answer", "/plan/sheet", "/"):
        assert upward(told["epsilon"]) in unescape(client.get(path, params=asked).text)
    exec(compile(client.get("/plan/plan.py", params=asked).text, "plan.py", "exec"), {})
    assert str(told["error95"]) in capsys.readouterr().out.splitlines()[0]
    assert "for these curves" in unescape(client.get("/participation", params=asked).text)


def test_of_whom_and_of_what_the_error_is_stands_beside_it(client: Browser) -> None:
    page = client.get("/", params={"question": "correlation", **PAIR, "n": "3000", "epsilon0": "2"}).text
    assert "with 95 % probability, where all pairs of numbers are as frequent." in page


def test_the_form_offers_every_question_with_its_own_settings(client: Browser) -> None:
    page = client.get("/", params={"question": "correlation", **PAIR, "n": "3000", "epsilon0": "2"}).text
    for kind in QUESTIONS:
        shown = {"shares": "frequency", "number": "mean"}.get(kind.name, kind.name)
        assert f'name="question" value="{shown}"' in page
        assert all(f'name="{one.name}"' in page for one in kind.settings())
    assert 'value="correlation" checked' in page


def test_a_setting_is_explained_in_the_words_of_the_question_that_is_asked(client: Browser) -> None:
    """A script shows what names the question: of settings that several have, its help alone."""
    page = client.get("/", params={"question": "frequency"}).text
    for kind in QUESTIONS:
        for one in kind.settings() if kind.name not in ("shares", "number") else ():
            (told,) = re.findall(f'<div id="{one.name}-help">(.*?)</div>', page, re.S)
            shown = re.findall('<p class="help"(?: data-of="([^"]*)")?>([^<]*)</p>', told)
            mine = [unescape(said) for kinds, said in shown if not kinds or kind.name in kinds.split()]
            assert mine == [one.help.replace("`", "")], (kind.name, one.name)


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "asked",
    [
        {"trust": "shuffler", "question": "frequency", "n": "3000", "k": "5", "epsilon": "1"},
        {"trust": "users", "question": "frequency", "n": "3000", "k": "5", "error": "0.02", "honest": "0.8"},
        {"trust": "shuffler", "question": "mean", "n": "3000", "lower": "0", "upper": "9", "epsilon": "1"},
        {"trust": "users", "question": "mean", "n": "9000", "lower": "0", "upper": "9", "epsilon": "1", "grid": "3"},
        {"trust": "shuffler", "question": "frequency", "n": "3000", "k": "50", "epsilon": "1", "dummies": "sparse"},
        {"trust": "shuffler", "question": "frequency", "n": "3000", "k": "5", "epsilon": "1", "rounds": "12"},
        {"trust": "shuffler", "question": "mean", "n": "9000", "lower": "0", "upper": "9", "epsilon": "1"}
        | {"dummies": "digits"},
    ],
    ids=["shuffler", "users", "mean of the shuffler", "mean of users", "sparse", "rounds", "digits"],
)
def test_who_makes_the_noise_is_said_and_exported_as_on_the_command_line(
    client: Browser, asked: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = by_hand(asked, capsys, "--out", str(tmp_path / "plan.toml"))
    del told["files"]
    assert client.get("/plan/plan.json", params=asked).json() == told
    assert client.get("/plan/survey.toml", params=asked).text == (tmp_path / "plan.toml").read_text()
    for path in ("/plan/answer", "/plan/sheet", "/"):
        page = unescape(client.get(path, params=asked).text)
        assert all(line in page for line in told["trust_statement"]) and upward(told["epsilon"]) in page
    exec(compile(client.get("/plan/plan.py", params=asked).text, "plan.py", "exec"), {})
    assert capsys.readouterr().out.splitlines()[1:] == told["trust_statement"]
    assert "`trust` must be" in unescape(client.get("/participation", params=asked).text)


@pytest.mark.exhaust
def test_what_is_shown_first_is_a_bound_says_so_and_recommends_as_the_plan(client: Browser) -> None:
    for asked in ({"n": "3100"}, {"n": "7300", "honest": "0.6"}, {"n": "2300", "error": "", "epsilon": "0.7"}):
        question = {**SHARES, "honest": "", **asked}
        first = unescape(client.get("/plan/answer", params=question).text)
        told = client.get("/plan/plan.json", params=question).json()
        found = Plans().first(**Question.of(question).arguments())
        assert isinstance(found, Recommendation) and found.epsilon >= told["central"]["attack_lower"]
        assert found.epsilon == pytest.approx(told["epsilon"], rel=5e-4) and found.error95 == told["error95"]
        assert "central ε, at most" in first and upward(found.epsilon) in first and "upper bound" in first
        assert found.randomizer.label in first and found.randomizer.name == told["randomizer"]


@pytest.mark.exhaust
def test_the_python_plans_the_same(client: Browser, capsys: pytest.CaptureFixture[str]) -> None:
    code = client.get("/plan/plan.py", params=MEAN).text
    exec(compile(code, "plan.py", "exec"), {})
    told = client.get("/plan/plan.json", params=MEAN).json()
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"{told['randomizer']} {told['epsilon0']} {told['epsilon']} {told['error95']}"
    assert lines == told["central"]["lines"]


def test_a_page_without_scripts_answers_in_full(client: Browser) -> None:
    page = client.get("/", params={**MEAN, "full": "1"}).text
    assert 'method="get" action="/"' in page and 'value="3000"' in page
    assert "Price of accuracy" in page and "Other mechanisms" in page and "/plan/more" not in page
    assert "<script>" not in page and "style=" not in page and "onclick" not in page


def test_an_answer_names_the_address_that_asks_again(client: Browser) -> None:
    answer = client.get("/plan/answer", params={**MEAN, "epsilon": "", "k": "4", "full": "1"})
    assert answer.headers["hx-replace-url"] == f"/?{Question.of(MEAN).query}"


@pytest.mark.exhaust
def test_the_sheet_is_a_page_of_its_own(client: Browser) -> None:
    page = client.get("/plan/sheet", params=SHARES).text
    assert "20,000 people" in page and "dovetail plan --question frequency" in page and "data-print" in page


@pytest.mark.exhaust
def test_impossible_wishes_say_what_it_would_take_and_each_way_is_enough(client: Browser) -> None:
    asked = {"question": "frequency", "n": "500", "k": "3", "error": "0.02", "epsilon": "0.2"}
    first = client.get("/plan/answer", params=asked).text
    assert "cannot be met together" in first and "/plan/exact?" in first
    page = client.get("/plan/exact", params=asked).text
    ways = [unescape(way) for way in re.findall(r'class="button" href="(/\?[^"]+)"', page)]
    assert "What would it take?" in page and len(ways) == 3
    for way in ways[:2]:  # the third asks for people, and takes longer
        assert "recommended" in client.get(way.replace("/?", "/plan/exact?")).text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n": "0"}, "`n` must be"),
        ({"error": "2"}, "`error` must be"),
        ({"question": "<b>"}, "`question` must be"),
        ({"n": "<script>alert(1)</script>"}, "`n` must be"),
        ({"randomizer": '"><script>alert(1)</script>'}, "`randomizer` must be"),
    ],
)
def test_a_bad_field_is_refused_in_a_line_and_escaped(client: Browser, wrong: dict[str, str], said: str) -> None:
    for path in ("/", "/plan/answer", "/plan/sheet", "/participation"):
        page = client.get(path, params={**SHARES, **wrong}).text
        assert said in unescape(page) and "<script>alert" not in page and "Traceback" not in page
    assert client.get("/plan/plan.json", params={**SHARES, **wrong}).status_code == 400


@pytest.mark.exhaust
def test_the_page_of_participation_has_both_curves(client: Browser) -> None:
    page = client.get("/participation", params=MEAN).text
    assert page.count("<svg") == 3 and "People who do not answer" in page


@pytest.fixture(scope="module")
def grouped() -> CollectionPlan:
    return plan_collection(question="frequency", k=2, n=4000, epsilon0=1.0, groups=2, honest=0.9)


@pytest.mark.exhaust
def test_a_share_of_dishonest_people_is_what_the_planner_promises_with_it(grouped: CollectionPlan) -> None:
    (point,) = dishonest_curve(grouped, [0.1])
    assert point.epsilon == pytest.approx(grouped.epsilon, rel=2e-4) and point.epsilon >= grouped.central.attack_lower
    assert point.honest == grouped.central.honest_n == 2000 - 4000 + 3600


@pytest.mark.exhaust
def test_absent_people_are_a_smaller_collection(grouped: CollectionPlan) -> None:
    (point,) = absent_curve(grouped, [0.5])
    smaller = plan_collection(question="frequency", k=2, n=2000, epsilon0=1.0, groups=2, honest=0.9,
                              delta=grouped.requirements.delta, randomizer=grouped.randomizer.name)  # fmt: skip
    assert point.answers == 2000 and point.honest == smaller.central.honest_n
    assert point.epsilon == pytest.approx(smaller.epsilon, rel=2e-4) and point.epsilon >= smaller.central.attack_lower
    assert point.error95 == smaller.error95


@pytest.mark.exhaust
def test_curves_end_at_the_local_guarantee_and_never_fall(grouped: CollectionPlan) -> None:
    for curve in (dishonest_curve(grouped, [0.0, 0.5, 0.999]), absent_curve(grouped, [0.0, 0.5, 0.999])):
        found = [point.epsilon for point in curve]
        assert found == sorted(found) and found[-1] <= grouped.epsilon0


def test_a_question_is_answered_once_and_its_error_kept() -> None:
    calls = list[int]()

    def work(n: int) -> int:
        calls.append(n)
        if n < 0:
            raise ValueError
        return 2 * n

    kept = Kept(work, most=2)
    assert [kept(n=1), kept(n=1), kept(n=2), kept(n=3), kept(n=1)] == [2, 2, 4, 6, 2]
    assert calls == [1, 2, 3, 1] and kept.knows(n=1) and not kept.knows(n=2)


def test_what_was_changed_is_worked_out_ahead_in_both_directions() -> None:
    first, second = Question(SHARES), Question({**SHARES, "error": "0.04"})  # down from 0.05
    assert [one.texts["error"] for one in likely(first, second)] == ["0.03", "0.025", "0.05", "0.06"]
    assert [one.texts["error"] for one in likely(second, first)] == ["0.06", "0.08", "0.04", "0.03"]
    assert likely(first, first) == [] == likely(first, Question(MEAN))
    assert {one.texts["n"] for one in likely(Question({}), first)} == {"16000", "25000", "20000"}


def test_what_is_worked_out_ahead_waits_while_a_person_asks_something_else() -> None:
    begun, asked, done = Event(), Event(), list[str]()

    class Slow(Plans):
        def whole(self, **asking: Any) -> Any:
            begun.set()
            asked.wait(PATIENCE)
            self.between()
            done.append("ahead")

    plans = Slow()
    ahead = Ahead(plans)
    ahead.start()
    begun.wait(PATIENCE)
    with ahead.while_asking(Question(SHARES)):
        asked.set()
        plans.between()  # who asks does not wait
        done.append("person")
    until(lambda: len(done) == 2)
    ahead.stop()
    assert done == ["person", "ahead"]


def test_what_is_worked_out_ahead_goes_on_where_a_person_waits_for_it() -> None:
    done = Event()

    class Slow(Plans):
        def whole(self, **asking: Any) -> Any:
            self.between()
            done.set()

    plans = Slow()
    ahead = Ahead(plans)
    with ahead.while_asking(Question(START)):
        ahead.start()
        assert done.wait(PATIENCE)
    ahead.stop()
