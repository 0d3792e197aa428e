"""Every cell of the table of what goes together: allowed ones run end to end, refused ones say why."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.errors import ConfigError, UnsupportedError
from dovetail.core.question import QUESTIONS
from dovetail.core.stages import SHUFFLERS
from dovetail.engine.fitted_orders import arrangement_of
from dovetail.engine.supported import refuse_unsupported
from dovetail.job.config import parse_config
from dovetail.job.questions import questions_of as several_of
from dovetail.job.together import CAMPAIGN, MEMORY, PROCESSES, RELEASE, SEVERAL, SPARK, STRINGS, Choices, page, table

N = 80
TABLE = pl.DataFrame(
    {
        "id": range(N),
        "answer": ["no", "yes", "yes", "maybe"] * (N // 4),
        "height": np.linspace(150.0, 190.0, N),
        "weight": np.linspace(55.0, 95.0, N)[::-1],
        "age": [20, 21, 22, 23] * (N // 4),
        "time": [1] * N,
        "step": np.linspace([0.0, 0.0], [1.0, -1.0], N),
    }
)
CELLS = list(table())
ALLOWED = 1022


SEARCHED: dict[str, dict[str, Any]] = {  # keys of [strings]
    "local": {"trust": "local"},
    "shuffler": {},
    "gaussian": {"dummies": "gaussian"},
    "sparse": {"dummies": "sparse"},
    "users": {"trust": "users", "epsilon": 8.0},
}
NUMBER = {"lower": 140.0, "upper": 200.0}
SHARES = {"categories": ["no", "yes", "maybe"]}
PAIR = {"ask": "covariance", "other": "weight", "other_lower": 50.0, "other_upper": 100.0}
MANY = pl.concat([TABLE] * 50).with_columns(id=pl.int_range(pl.len()))  # few people would be refused


def table_of(one: Choices) -> pl.DataFrame:
    many = one.question in ("regression", "tables") or (one.question, one.noise) == (STRINGS, "users")
    return MANY if many else TABLE


def config_of(one: Choices) -> dict[str, Any]:
    if one.question == STRINGS:
        return strings_of(one)
    return questions_of(one) if one.question in SEVERAL else question_of(one)


def names_of(one: Choices) -> tuple[str, str]:
    """Shares beside a mean; beside a covariance where a mean does not go; two means where shares do not."""
    if one.noise == "digits":
        return "number", "number"
    return "shares", "covariance" if one.noise in ("classes", "sparse") else "number"


def strings_of(one: Choices) -> dict[str, Any]:
    made = question_of(replace(one, question="shares"))
    del made["data"]["categories"]
    made["strings"] = {"epsilon": 2.0, "delta": 1e-2, "levels": 2, **SEARCHED.get(one.noise, {})}
    if one.noise in SEARCHED:
        del made["randomize" if one.noise == "local" else "promise"]
    return made


def questions_of(one: Choices) -> dict[str, Any]:
    each = [question_of(replace(one, question=name)) for name in names_of(one)]
    if one.noise == "digits":
        each[1]["data"] |= {"private": "weight", "lower": 50.0, "upper": 100.0}
    asked = [
        {
            "column": single["data"].pop("private"),
            **{key: single["data"].pop(key) for key in ("categories", "lower", "upper") if key in single["data"]},
            **single.pop("question", {}),
            **single.pop("randomize", {}),
        }
        for single in each
    ]
    return {**each[0], "ask": one.question, "questions": asked}


def question_of(one: Choices) -> dict[str, Any]:
    numeric, shares = {"private": "height", **NUMBER}, {"private": "answer", **SHARES}
    data: dict[str, Any] = {"person": "id", **(shares if one.question == "shares" else numeric)}
    made: dict[str, Any] = {"schema_version": 1, "mode": one.mode, "data": data}
    if one.question == "covariance":
        made["question"] = PAIR
    if one.question == "tables":
        data = made["data"] = {"person": "id", **shares}
        made["question"] = {"ask": "tables", "others": "age: 20 | 21 | 22 | 23; time: 1 | 2"}
    if one.question == "correlation":
        made["question"] = PAIR | {"ask": "correlation"}
    if one.question == "regression":
        made["question"] = {"ask": "regression", "others": "weight = 50..100", "points": 2}
    if one.question == "nonresponse":
        data["missing"] = "no answer"
    if one.question == "distribution":
        made["question"] = {"ask": "distribution", "bins": 8}
    if one.question == "vector":
        data = made["data"] = {"person": "id", "private": "step"}
        made["question"] = {"ask": "vector", "dimension": 2, "clip": 1.0}
    usual = {"mean": "laplace", "vector": "closest_direction"}.get(QUESTIONS[one.question].needs, "krr")
    drowns = one.question in ("correlation", "regression", "tables")  # a smaller epsilon would
    made["randomize"] = {"randomizer": usual, "epsilon": 8.0 if drowns else 2.0}
    if one.noise == "classes":
        made["randomize"] |= {"by": "age", "epsilons": {"20": 6.0 if drowns else 1.0}}
        data["public"] = ["age"]
    elif one.noise == "memoized":
        made["memoize"] = {"constant_values": True}
    elif one.noise != "local":
        del made["randomize"]
        trust = "users" if one.noise == "users" else "shuffler"
        made["promise"] = {"trust": trust, "epsilon": 8.0 if drowns else 2.0, "delta": 1e-2}
        if one.noise not in ("users", "shuffler"):
            made["promise"]["dummies"] = one.noise
    if one.order != "uniform":
        made["shuffle"] = {"shuffler": one.order}
        if one.order != "identity":
            columns = ["age", "time"] if one.order == "planar" else ["age"]
            apart = one.order in ("within_groups", "rase")
            groups = {"labels": "age"} if apart else {"points": columns, "radius": 1.0}
            made["shuffle"]["groups"] = groups
            data["public"] = columns
            if not apart:
                made["shuffle"]["alpha"] = 2.0
    return made


def expect_a_report(report: Any, one: Choices) -> None:
    document = report.document()
    each = [(one.question, document["estimates"])]
    if one.question in SEVERAL:
        each = [(name, asked["estimates"]) for name, asked in zip(names_of(one), document["questions"], strict=True)]
    for name, estimates in each:
        assert np.isfinite(estimates["overall"]["value"]).all()
        assert np.isfinite(estimates["overall"]["standard_error"]).all()
        assert estimates["measure"] == ("share" if name == STRINGS else QUESTIONS[name].measure)
    assert (
        document["mode"] == one.mode
        and document["central"]["source" if "epsilon" in document["central"] else "reason"]
    )


@pytest.mark.parametrize("one", [one for one, why in CELLS if why is None and one.engine == MEMORY], ids=str)
def test_what_goes_together_runs_in_one_process(one: Choices, tmp_path: Path) -> None:
    expect_a_report(dt.run(config_of(one), table=table_of(one), ledger=tmp_path), one)


@pytest.mark.exhaust
@pytest.mark.parametrize("one", [one for one, why in CELLS if why is None and one.engine == PROCESSES], ids=str)
def test_what_goes_together_runs_on_processes(one: Choices, tmp_path: Path) -> None:
    expect_a_report(in_files(one, tmp_path, workers=1), one)


@pytest.fixture(scope="module")
def session() -> Iterator[None]:
    """One session for all cells: a run takes the one that is active."""
    pytest.importorskip("pyspark")
    from dovetail.engine import spark

    made = spark.session_at("local[2]")
    yield
    with spark.quiet():
        made.stop()


@pytest.mark.exhaust
@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("one", [one for one, why in CELLS if why is None and one.engine == SPARK], ids=str)
def test_what_goes_together_runs_on_spark(one: Choices, tmp_path: Path) -> None:
    expect_a_report(in_files(one, tmp_path, master="local[2]"), one)


def in_files(one: Choices, place: Path, **engine: Any) -> Any:
    table_of(one).write_parquet(place / "table.parquet")
    asked = config_of(one)
    asked["data"]["path"] = str(place / "table.parquet")
    return dt.engine.run(asked, out=place / "out", ledger=place / "ledger", engine=one.engine, **engine)


@pytest.mark.exhaust
def test_what_does_not_go_together_is_refused_in_one_line() -> None:
    for one, why in CELLS:
        if why is None or one.engine == CAMPAIGN:  # whose files say it in tests/collect/analyzer/test_asked.py
            continue
        with pytest.raises((ConfigError, UnsupportedError)) as refused:
            asked = config_of(one)
            if one.question == "number" and one.noise == "classes":
                asked["randomize"]["randomizer"] = "krr"  # the one that goes with classes
            settings: Any = several_of(asked) or parse_config(asked)
            if one.engine != MEMORY:
                refuse_unsupported(settings)
        assert "\n" not in str(refused.value), one


def test_what_a_fact_is_against_is_told_apart_from_what_nobody_has_built() -> None:
    facts = {why for one, why in CELLS if why is not None and one.forbidden}
    missing = {why for one, why in CELLS if why is not None and not one.forbidden}
    assert facts and missing and not facts & missing
    assert page().index("## What does not go together") < page().index("## Not built yet")
    told = {line for line in page().partition("## Not built yet")[2].splitlines() if line.startswith("- ")}
    assert told == {f"- {why[0].upper()}{why[1:]}." for why in missing}
    assert sum(why is None for _, why in CELLS) == ALLOWED
    assert any(one.mode == RELEASE for one, why in CELLS if why is None)


def test_the_page_of_the_documentation_is_the_table() -> None:
    place = Path(__file__).parents[2] / "docs" / "reference" / "together.md"
    assert place.read_text(encoding="utf-8") == page()


def test_orders_that_tasks_draw_are_those_that_have_an_arrangement() -> None:
    for kind in SHUFFLERS:
        drawn = arrangement_of(kind.name) is not None or kind.name in ("uniform", "within_groups", "identity")
        assert kind.drawn_by_labels == drawn
