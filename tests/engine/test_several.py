"""Several questions in files: what travels together, which randomness draws it, and that nothing else decides."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.engine.oracle import GROUPS, KEY, SECRET, table, write_table
from tests.engine.test_draw import draw, files, reports

import dovetail as dt
from dovetail.core.entropy import KeyedEntropy, keyed_prints
from dovetail.core.errors import DataError, UnsupportedError
from dovetail.engine.job import Job
from dovetail.engine.rows import Secret
from dovetail.job.messages import draw_questions
from dovetail.job.questions import questions_of
from dovetail.ledger.releases import ReleaseLedger
from dovetail.table.released import to_columns

ANSWER: dict[str, Any] = {"column": "answer", "categories": ["a", "b", "c"], "epsilon": 2.0}
AMOUNT: dict[str, Any] = {
    "column": "amount", "lower": 0.0, "upper": 4.5, "grid": 0.5, "randomizer": "laplace", "epsilon": 3.0,
}  # fmt: skip


def asked(path: Path, ask: str, *, shuffler: str = "uniform", **more: Any) -> dict[str, Any]:
    groups = GROUPS.get(shuffler)
    public = [] if groups is None else groups.get("points", [groups.get("labels")])
    alpha = {} if shuffler in ("uniform", "within_groups") else {"alpha": 40.0}
    grouped = {} if groups is None else {"shuffle": {"shuffler": shuffler, "groups": groups, **alpha}}
    return {
        "schema_version": 1, "mode": "release", "ask": ask, "questions": [ANSWER, AMOUNT],
        "data": {"path": str(path), "person": "id", "public": public}, **grouped, **more,
    }  # fmt: skip


def by_person(
    secret: Secret, people: pl.DataFrame, randomizers: list[Any], *, drawn: bool = False
) -> list[list[Any]]:
    """What each person sends, one at a time, in the order of her key: None for a question that she did not draw."""
    rows = []
    for person in people.iter_rows(named=True):
        own = np.array([person["id"]])
        chosen = draw_questions(1, (1, 1), KeyedEntropy(secret.of("draw questions"), own))[0]
        held = [np.array(["abc".index(person["answer"])]), np.array([person["amount"]])]
        sent = [
            to_columns(
                one, one.randomize(value, KeyedEntropy(secret.of(f"randomize {name} {one.name}"), own)), list("abc")
            )
            for name, one, value in zip(("answer", "amount"), randomizers, held, strict=True)
        ]
        answers = [None if drawn and q != chosen else one["report"][0] for q, one in enumerate(sent)]
        rows.append((keyed_prints(secret.of("order"), own)[0].tolist(), answers))
    return [answers for _, answers in sorted(rows, key=lambda row: row[0])]


def columns(found: pl.DataFrame, *names: str) -> list[list[Any]]:
    return [list(row) for row in found.select(names).rows()]


@pytest.mark.exhaust
@pytest.mark.parametrize("ask", ["joint", "one"])
def test_whole_messages_are_those_that_each_person_would_draw_alone(ask: str, tmp_path: Path) -> None:
    people = table(90)
    job, _, _ = draw(asked(write_table(tmp_path / "in", people), ask), tmp_path / "out")
    randomizers = [part.noise.randomizer for part in job.parts(90)]
    found = columns(reports(tmp_path / "out"), "answer.report", "amount.report")
    assert found == by_person(Secret(SECRET), people, randomizers, drawn=ask == "one")
    assert (ask == "one") == any(None in row for row in found)


@pytest.mark.exhaust
def test_answers_that_are_sent_by_themselves_have_orders_and_files_of_their_own(tmp_path: Path) -> None:
    people = table(90)
    job, _, _ = draw(asked(write_table(tmp_path / "in", people), "all"), tmp_path / "out", parts=3)
    randomizers = [part.noise.randomizer for part in job.parts(90)]
    written = [pl.read_parquet(file) for file in files(tmp_path / "out")]
    assert [one.columns for one in written] == [["answer.report"]] * 3 + [["amount.report"]] * 3
    orders = []
    for q, name in enumerate(("answer", "amount")):
        secret = Secret(Secret(SECRET).of(f"batch {q}"))
        found = pl.concat(written[3 * q : 3 * q + 3])[f"{name}.report"].to_list()
        assert found == [row[q] for row in by_person(secret, people, randomizers)]
        orders.append(np.lexsort(keyed_prints(secret.of("order"), people["id"].to_numpy()).T[::-1]))
    assert (orders[0] == orders[1]).sum() < 15  # 1 on average: nothing links the answers of a person


@pytest.mark.exhaust
@pytest.mark.parametrize("ask", ["all", "joint", "one"])
@pytest.mark.parametrize("shuffler", ["uniform", "within_groups", "mallows", "noisy_sort", "planar"])
def test_batches_and_partitions_change_nothing(ask: str, shuffler: str, tmp_path: Path) -> None:
    people = table(120)
    settings = asked(write_table(tmp_path / "in", people), ask, shuffler=shuffler)
    draw(settings, tmp_path / "four", parts=4, rows=100)
    job, census, _ = draw(settings, tmp_path / "one", parts=1, rows=17)
    found = [
        reports(tmp_path / place) if ask != "all" else by_question(tmp_path / place) for place in ("four", "one")
    ]
    assert found[0].equals(found[1]) and found[0].height == 120 == census.n
    assert len(job.columns) == len(settings["data"]["public"])


def by_question(staging: Path) -> pl.DataFrame:
    written = [pl.read_parquet(file) for file in files(staging)]
    each = [pl.concat([one for one in written if name in one.columns]) for name in ("answer.report", "amount.report")]
    return pl.concat([each[0], each[1].select("amount.report")], how="horizontal")


@pytest.mark.exhaust
def test_a_release_of_several_questions_is_recorded_reproduced_and_known_again(tmp_path: Path) -> None:
    settings = asked(write_table(tmp_path / "in", table(90)), "all", shuffler="within_groups")
    settings["estimate"] = {"by": ["region"], "min_group_size": 10}
    options: dict[str, Any] = {"out": tmp_path / "out", "ledger": tmp_path / "ledger", "workers": 1}
    first, again = (dt.engine.run(settings, **options).document() for _ in range(2))
    assert first["questions"] == again["questions"] and again["release"]["releases"] == 1
    (entry,) = ReleaseLedger(tmp_path / "ledger").entries()
    assert entry.epsilon == 5.0 == first["local"]["epsilon"]
    shares, mean = (one["estimates"] for one in first["questions"])
    assert shares["overall"]["n"] == mean["overall"]["n"] == 90 and "truth" not in shares["overall"]
    assert [one["group"] for one in shares["groups"]] == [one["group"] for one in mean["groups"]] != []
    with pytest.raises(UnsupportedError, match="under other terms"):
        dt.engine.run({**settings, "ask": "joint"}, **options | {"out": tmp_path / "other"})


def test_the_same_reports_give_the_same_estimates_in_memory_and_in_files(tmp_path: Path) -> None:
    """Under so little noise that what is drawn is what people hold."""
    people = table(60)
    settings = asked(write_table(tmp_path / "in", people), "joint", shuffler="within_groups")
    ages = {"column": "age", "categories": ["30", "31", "33", "40", "41", "60"], "epsilon": 60.0}
    settings["questions"] = [{**ANSWER, "epsilon": 60.0}, ages]
    settings["estimate"] = {"by": ["region"], "min_group_size": 10}
    in_files = dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "one", workers=1).document()
    in_memory = dt.run(settings, table=people, ledger=tmp_path / "two").document()
    for here, there in zip(in_files["questions"], in_memory["questions"], strict=True):
        assert here["estimates"] == there["estimates"]
    assert in_files["central"] == in_memory["central"] and in_files["linkage"] == in_memory["linkage"]


def test_what_is_wrong_with_a_column_names_it(tmp_path: Path) -> None:
    people = table(60).with_columns(amount=pl.when(pl.col("id") == table(60)["id"][7]).then(9.0).otherwise("amount"))
    settings = asked(write_table(tmp_path / "in", people), "one")
    with pytest.raises(DataError, match="private column 'amount': 1 value lies outside the declared range"):
        dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)


@pytest.mark.exhaust
def test_dummies_have_an_even_part_of_the_promise_and_every_question_its_own(tmp_path: Path) -> None:
    path = write_table(tmp_path / "in", table(300))
    promise = {"trust": "shuffler", "epsilon": 2.0, "delta": 1e-3}
    plain = [
        {key: value for key, value in one.items() if key not in ("epsilon", "randomizer", "grid")}
        for one in (ANSWER, AMOUNT)
    ]
    settings = asked(path, "all", promise=promise) | {"questions": plain}
    job = Job(questions_of(settings), KEY)  # type: ignore[arg-type]
    assert [part.noise.dummies.epsilon for part in job.parts(300)] == [1.0, 1.0]  # type: ignore[attr-defined]
    report = dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    central = report.evaluation.central
    assert isinstance(central, dt.CentralDP) and central.trust == "shuffler"
    assert 1.9 < central.epsilon <= 2.0 * (1 + 1e-9) and central.delta == pytest.approx(1e-3)
    rows = [len(pl.read_parquet(file)) for file in sorted((tmp_path / "out" / "sanitized").glob("*.parquet"))]
    assert all(count > 300 for count in rows) and rows[0] != rows[1]


@pytest.mark.exhaust
def test_every_question_may_have_classes_of_its_own(tmp_path: Path) -> None:
    people = table(200)
    path = write_table(tmp_path / "in", people)
    loud = {
        "column": "answer",
        "categories": ["a", "b", "c"],
        "epsilon": 40.0,
        "by": "region",
        "epsilons": {"x": 1.0},
    }
    ages = {"column": "age", "categories": ["30", "31", "33", "40", "41", "60"], "epsilon": 40.0, "by": "y"}
    settings = asked(path, "all") | {"questions": [loud, {**ages, "epsilons": {"1": 0.5}}]}
    settings["data"]["public"] = ["region", "y"]
    report = dt.engine.run(settings, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    shares = [one["estimates"]["overall"] for one in report.document()["questions"]]
    assert [len(one["value"]) for one in shares] == [3, 6] and all(one["n"] == 200 for one in shares)
    job = Job(questions_of(settings), KEY)  # type: ignore[arg-type]
    quiet = {"region": (people["region"] == "x").sum(), "y": (people["y"] == 1).sum()}
    _, census, _ = draw(settings, tmp_path / "drawn")
    made = job.collection(census)
    assert [part.noise.sizes(part.people)[0][0] for part in made.parts] == list(quiet.values())  # type: ignore[union-attr,attr-defined]


@pytest.mark.exhaust
def test_other_answers_to_one_question_are_another_table(tmp_path: Path) -> None:
    people = table(60)
    settings = asked(write_table(tmp_path / "in", people), "joint")
    first = draw(settings, tmp_path / "one")[1]
    turned = people.with_columns(amount=4.5 - pl.col("amount"))
    second = draw(asked(write_table(tmp_path / "again", turned), "joint"), tmp_path / "two")[1]
    assert first.fingerprint != second.fingerprint and first.grouping == second.grouping
