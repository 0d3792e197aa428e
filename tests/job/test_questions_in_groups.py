"""Several questions inside the groups of a public column: what stays where, what is promised, and what is refused."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.job.surveys import survey
from tests.job.test_questions import HOURS, SECRET, asked

from dovetail.account.amplify import amplify
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DovetailError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.job.questions import QuestionsCollection, parse_questions
from dovetail.job.questions_plan import plan_questions
from dovetail.job.run import run
from dovetail.ledger.releases import ReleaseLedger
from dovetail.randomize.krr import KRR
from dovetail.report.html import render_html

GROUPED: dict[str, Any] = {
    "data": {"person": "id", "public": ["town"]},
    "shuffle": {"shuffler": "within_groups", "groups": {"labels": "town"}},
    "estimate": {"by": ["town"], "min_group_size": 2},
}
Seen = list[tuple[int, int | None]]


@pytest.fixture
def promised(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """How many people, and honest ones, a promise was asked for; the promise itself is a quick one."""
    seen: Seen = []

    def some(_: Any, *, n: int, delta: float, honest: int | None, **__: Any) -> CentralDP:
        seen.append((n, honest))
        return amplify(1.0, n=n, delta=delta)

    for module in ("questions", "questions_plan"):
        monkeypatch.setattr(f"dovetail.job.{module}.questions_guarantee", some)
    return seen


def twins(n: int = 400) -> pl.DataFrame:
    """Two columns that say where each person lives and whether she is tall; noise at epsilon 40 leaves both alone."""
    towns = [("north", "south", "south")[i % 3] for i in range(n)]
    tall = [("no", "yes")[i // 3 % 2] for i in range(n)]
    return pl.DataFrame({"id": range(n), "home": towns, "tall": tall, "town": towns})


LOUD = (
    {"column": "home", "categories": ["north", "south"], "epsilon": 40.0},
    {"column": "tall", "categories": ["no", "yes"], "epsilon": 40.0},
)


@pytest.mark.parametrize("ask", ["all", "joint", "one"])
def test_a_report_stays_in_its_group_and_at_no_place_of_it(ask: str) -> None:
    collection = QuestionsCollection.of(parse_questions(asked(ask, *LOUD, **GROUPED)), simulation(1), table=twins())
    found = collection.release(simulation(2))
    assert found.columns == ["town", "home.report", "tall.report"]
    assert found["town"].to_list() == collection.public["town"].to_list()
    home = found.filter(pl.col("home.report").is_not_null())
    assert (home["home.report"] == home["town"]).all()
    stood = np.array(["no", "yes"])[collection.parts[1].survey.values]
    sent = found["tall.report"].to_list()
    same = [one == other for one, other in zip(sent, stood, strict=True) if one is not None]
    assert 0.2 < sum(same) / len(same) < 0.8  # half of 200 or 400 on average: 8 standard deviations
    for town in ("north", "south"):
        held = stood[(collection.public["town"] == town).to_numpy()]
        if ask != "one":
            assert sorted(found.filter(pl.col("town") == town)["tall.report"]) == sorted(held)


def test_the_promise_is_that_of_the_smallest_group_with_all_who_cheat_in_it(promised: Seen) -> None:
    sizes = survey()["town"].value_counts()["count"].to_list()
    report = run(asked("one", promise={"honest": 590}, **GROUPED), table=survey())
    assert promised == [(min(sizes), min(sizes) - 10)] and min(sizes) < 300
    ways = plan_questions(parse_questions(asked("one", promise={"honest": 590}, **GROUPED)), 600, smallest=min(sizes))
    assert set(promised) == {promised[0]}
    assert isinstance(report.evaluation.central, CentralDP)
    assert {way.central.epsilon for way in ways} == {report.evaluation.central.epsilon}
    assert report.document()["collection"]["public"] == ["town"]
    assert any("inside the groups of town alone" in line for line in report.assumptions)


def law_of_counts(parts: list[Any], values: list[tuple[int, ...]]) -> dict[Any, float]:
    """Of binary questions with these channels in one group, each shuffled by itself: the exact law of the answers."""
    total: dict[Any, float] = {}
    for bits in product(range(2), repeat=len(values) * len(parts)):
        sent = np.reshape(bits, (len(values), len(parts)))
        chance = 1.0
        for person, row in enumerate(values):
            for q, part in enumerate(parts):
                chance *= part[row[q]][sent[person, q]]
        key = tuple(sent.sum(axis=0).tolist())
        total[key] = total.get(key, 0.0) + chance
    return total


@pytest.mark.exhaust
def test_nothing_that_is_released_of_groups_says_more_than_the_smallest_group_promises() -> None:
    """Every collection of two and three people in two groups, by enumeration."""
    parts = [KRR(2, epsilon).channel().matrix().tolist() for epsilon in (1.0, 0.5)]
    table = pl.DataFrame({"id": range(5), "a": ["no", "yes"] * 2 + ["no"], "b": ["no"] * 5, "town": list("nnsss")})
    questions = [{"column": c, "categories": ["no", "yes"], "epsilon": e} for c, e in (("a", 1.0), ("b", 0.5))]
    collection = QuestionsCollection.of(
        parse_questions(asked("all", *questions, promise={"delta": 0.05}, **GROUPED)), simulation(0), table=table
    )
    central = collection.central
    assert isinstance(central, CentralDP) and central.n == 2
    answers = list(product(range(2), repeat=2))
    for size in (2, 3):
        for others in product(answers, repeat=size - 1):
            for mine, instead in product(answers, repeat=2):
                first, second = (law_of_counts(parts, [own, *others]) for own in (mine, instead))
                delta = sum(max(0.0, first[key] - np.exp(central.epsilon) * second[key]) for key in first)
                assert delta <= 0.05 * (1 + 1e-12)


@pytest.mark.exhaust
@pytest.mark.usefixtures("promised")
@pytest.mark.parametrize("ask", ["all", "one"])
def test_each_group_has_its_estimates_of_its_own_people(ask: str) -> None:
    table = survey().with_columns(
        secret=pl.when(pl.col("town") == "north").then(pl.lit("yes")).otherwise(pl.lit("no"))
    )
    given = asked(ask, {**SECRET, "epsilon": 6.0}, {**HOURS, "epsilon": 6.0}, **GROUPED)
    report = run(given, table=table)
    for one in report.document()["questions"]:
        groups = one["estimates"]["groups"]
        assert [block["group"] for block in groups] == ["north", "south"]
        assert sum(block["n"] for block in groups) == one["answers"]
        for block in groups:
            for value, error, truth in zip(block["value"], block["standard_error"], block["truth"], strict=True):
                assert abs(value - truth) < 6.2 * error + 1e-9  # false alarm below 1e-9
    assert report.document()["questions"][0]["estimates"]["groups"][0]["truth"] == [0.0, 1.0]
    assert "Estimates by group: secret" in render_html(report.document())
    assert {"secret by town", "hours by town"} <= set(report.to_polars()["by"])
    few = run({**given, "estimate": {"by": ["town"], "min_group_size": 300}}, table=table).document()
    assert [len(one["estimates"]["groups"]) for one in few["questions"]] == [1, 1]
    small = int((table["town"] == "south").sum())
    assert few["questions"][0]["estimates"]["withheld"] == [{"by": "town", "groups": 1, "people": small}]


def test_somebody_alone_in_a_group_has_her_local_promise_only() -> None:
    table = survey(40).with_columns(town=pl.when(pl.col("id") == 7).then(pl.lit("west")).otherwise(pl.col("town")))
    report = run(asked("one", **GROUPED), table=table)
    assert isinstance(report.evaluation.central, Missing) and "nobody else" in report.evaluation.central.reason
    assert "nobody else" in render_html(report.document())


@pytest.mark.exhaust
@pytest.mark.usefixtures("promised")
def test_a_release_of_groups_is_drawn_once_and_other_groups_are_other_terms(tmp_path: Path) -> None:
    given = asked("one", mode="release", seed=None, **GROUPED)
    first, again = (run(given, table=survey(), ledger=tmp_path) for _ in range(2))
    assert first.sanitized.equals(again.sanitized)
    assert first.sanitized.columns == ["town", "secret.report", "hours.report"]
    assert first.document()["questions"] == again.document()["questions"]
    plain = asked("one", mode="release", seed=None)
    moved = survey().with_columns(town=pl.col("town").reverse())
    for other, table in ((plain, survey()), (given, moved)):
        with pytest.raises(DovetailError, match="other terms"):
            run(other, table=table, ledger=tmp_path)
    twice = run(given, table=moved, ledger=tmp_path, new_release=True)
    assert twice.evaluation.order.guarantee.alpha == float("inf")


@pytest.mark.exhaust
@pytest.mark.usefixtures("promised")
@pytest.mark.parametrize("ask", [pytest.param("all", marks=pytest.mark.every_case), "joint", "one"])
def test_orders_of_answers_that_are_sent_by_themselves_add(ask: str, tmp_path: Path) -> None:
    """Each batch has an order of its own: an order of alpha 1 for each of two of them."""
    near = {"labels": "age", "radius": 1.0}
    ordered = {
        "data": {"person": "id", "public": ["age"]},
        "shuffle": {"shuffler": "mallows", "alpha": 1.0, "groups": near},
    }
    table = survey(60)
    report = run(asked(ask, mode="release", seed=None, **ordered), table=table, ledger=tmp_path)
    alpha = 2.0 if ask == "all" else 1.0
    assert report.evaluation.order.guarantee.alpha == pytest.approx(alpha)
    assert [one.alpha for one in ReleaseLedger(tmp_path).entries()] == pytest.approx([alpha])
    assert report.sanitized.columns[0] == "age"
    central, block = report.evaluation.central, int(table["age"].value_counts()["count"].min())
    assert isinstance(central, CentralDP) and central.n == block  # people of one age could stand in for one another


POINTS = {"shuffler": "within_groups", "groups": {"points": ["age"], "radius": 1.0}}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"shuffle": POINTS}, r"column 'age' is not listed in \[data\] public"),
    ({"shuffle": {"shuffler": "within_groups"}}, "shuffler 'within_groups' needs `groups`"),
    ({"shuffle": {"shuffler": "within_groups", "groups": {"labels": "twon"}}, "estimate": {}},
     r"column 'twon' is not listed in \[data\] public; did you mean 'town'"),
    ({"shuffle": {**GROUPED["shuffle"], "compare": ["uniform"]}}, r"\[shuffle\] compare does not go with"),
    ({"shuffle": {}, "estimate": {}}, r"\[data\] public does not go with .* releases no public column"),
    ({"estimate": {"by": ["age"]}}, r"\[estimate\] by: column 'age' is not listed in \[data\] public"),
    ({"estimate": {"window": 3}}, r"\[estimate\] window does not go with"),
    ({"data": {"person": "id", "public": ["town", "secret.report"]}},
     "'secret.report' has a name that the reports need"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "words"), WRONG, ids=[words[:30] for _, words in WRONG])
def test_what_does_not_go_with_groups_is_refused_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        run(asked("one", **{**GROUPED, **changes}), table=survey())
    assert "\n" not in str(refused.value)


def test_a_plan_asks_for_the_smallest_group_where_there_are_groups() -> None:
    with pytest.raises(ConfigError, match="say how many the smallest one has"):
        plan_questions(parse_questions(asked("one", **GROUPED)), 600)
    with pytest.raises(ConfigError, match="`smallest` is for groups"):
        plan_questions(parse_questions(asked("one")), 600, smallest=30)
    with pytest.raises(DovetailError, match="`smallest` must be"):
        plan_questions(parse_questions(asked("one", **GROUPED)), 600, smallest=601)


def test_all_faults_of_a_file_are_named_at_once() -> None:
    given = asked(
        "both", {**SECRET, "epsilon": -1.0}, {**HOURS, "upper": -1.0}, {"epsilon": 1.0}, strings={"epsilon": 1.0},
        promise={"delta": 2.0}, data={"person": "id", "labels": {"nobody": {"": "0"}}},
    )  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        run(given, table=survey())
    lines = str(refused.value).splitlines()
    wanted = ("[strings]", "`ask`", "promise.delta", "question 3", "'nobody'", "('secret')", "('hours')")
    assert len(lines) == len(wanted) and all(any(word in line for line in lines) for word in wanted), lines
