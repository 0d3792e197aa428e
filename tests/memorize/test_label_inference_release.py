"""Label inference of our own releases: what the release with a person tells beyond the release without them."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.stages import SECTIONS
from dovetail.job.collection import Collection
from dovetail.job.rehearse import rehearse
from dovetail.report.html import render_html
from dovetail.report.tables import attack_table, section_notes

measure = SECTIONS["label_inference"].measure


def asked(epsilon: float, *, public: list[str], groups: str | None = None, people: int = 400, seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "answer": draw.choice(["no", "yes"], people),
            "age": draw.integers(20, 24, people),
            "weight": draw.permutation(people) + 0.5,
        }
    )
    fit = (
        (lambda rows: dt.Identity(rows.height))
        if groups is None
        else (lambda rows: dt.WithinGroups(dt.Groups.from_labels(rows[groups].to_numpy())))
    )
    return Collection.of(
        table, private="answer", public=public, categories=["no", "yes"], randomizer=dt.KRR(k=2, epsilon=epsilon),
        shuffler=fit if public else None, rng=dt.simulation(seed),
    )  # fmt: skip


def test_a_row_that_stays_with_its_person_tells_what_the_randomizer_lets_through() -> None:
    """Own row: right with probability p = e / (1 + e); another's: 1/2, as the answers are independent of all else.

    False alarms below 1e-9: four hundred people are attacked in each of ten pairs; five deviations of the mean of
    4,000 coins, doubled for people who are attacked again.
    """
    found: Any = measure(asked(1.0, public=["weight"]), dt.simulation(2))
    right, room = math.e / (1.0 + math.e), 2.0 * 6.2 * 0.5 / math.sqrt(4_000)
    assert found["attacked"] == 4_000
    assert found["target_accuracy"] == pytest.approx(right, abs=room)
    assert found["reference_accuracy"] == pytest.approx(0.5, abs=room)
    assert found["score"] == pytest.approx(found["partition"]["memorized"] - found["partition"]["misrepresented"])
    assert found["interval"][0] < right - 0.5 < found["interval"][1] and found["p"] < 1e-5
    assert found["verdict"] == "repeats people"


@pytest.mark.parametrize(
    ("public", "groups"), [(["age"], None), (["age", "weight"], "age")], ids=["shared by many", "shuffled in groups"]
)
def test_where_a_row_is_one_of_many_little_is_told_of_its_own_person(public: list[str], groups: Any) -> None:
    """About fifty share an age: a majority of fifty is its own people's doing, a little: up to 1/sqrt(2 pi 50)."""
    found: Any = measure(asked(1.0, public=public, groups=groups), dt.simulation(2))
    assert abs(found["score"]) < 0.08 and found["interval"][0] < 0.06


def test_a_value_that_no_released_row_names_is_never_guessed() -> None:
    few = asked(1.0, public=["weight"])
    table = few.survey.public.with_columns(answer=pl.Series(["rare"] + ["no", "yes"] * 199 + ["no"]))
    rare = Collection.of(
        table, private="answer", public=["weight"], categories=["no", "rare", "yes"],
        randomizer=dt.KRR(k=3, epsilon=12.0), shuffler=lambda rows: dt.Identity(rows.height), rng=dt.simulation(1),
    )  # fmt: skip
    found: Any = measure(rare, dt.simulation(2))
    assert found["target_accuracy"] > 0.99 and found["verdict"] == "repeats people"


@pytest.mark.exhaust
def test_a_public_column_of_numbers_and_texts_is_compared_as_categories() -> None:
    few = asked(1.0, public=["weight"])
    table = few.survey.public.with_columns(
        answer=pl.Series(["no", "yes"] * 200), age=pl.Series(["20", "30", "40", "60+"] * 100)
    )
    mixed = Collection.of(
        table, private="answer", public=["age"], categories=["no", "yes"], randomizer=dt.KRR(k=2, epsilon=1.0),
        shuffler=lambda rows: dt.Identity(rows.height), rng=dt.simulation(1),
    )  # fmt: skip
    found: Any = measure(mixed, dt.simulation(2))
    assert found["attacked"] == 4_000
    assert "copies" in rehearse(mixed, rng=dt.simulation(2)).document()["copying"]


def test_a_rehearsal_says_it_among_the_attacks() -> None:
    found = rehearse(asked(1.0, public=["weight"]), rng=dt.simulation(2)).document()
    notes = attack_table(found).notes
    (told,) = [note for note in notes if note.startswith("Label inference")]
    assert "tells values of its own people" in told and "over 10 pairs of halves" in told
    page = render_html(found)
    assert page.index("What attackers got") < page.index("tells values of its own people"), "without any attack too"


@pytest.mark.parametrize(
    ("options", "why"), [({"public": []}, "no public columns"), ({"public": ["age"], "people": 60}, "80, got 60")]
)
def test_where_there_is_no_holdout_the_page_says_why(options: Any, why: str) -> None:
    found = rehearse(asked(1.0, **options), rng=dt.simulation(2)).document()
    assert found["label_inference"]["value"] is None and why in found["label_inference"]["reason"]
    assert "does not apply" in section_notes(found)[-1] and why in section_notes(found)[-1]


def test_label_inference_of_numbers_does_not_apply() -> None:
    from dovetail.memorize.sections.label_inference import NO_CATEGORIES

    draw = np.random.default_rng(1)
    table = pl.DataFrame({"income": draw.random(100), "age": draw.integers(20, 24, 100)})
    numeric = Collection.of(
        table, private="income", public=["age"], randomizer=dt.Laplace(lower=0.0, upper=1.0, epsilon=1.0),
        shuffler=lambda rows: dt.Identity(rows.height), rng=dt.simulation(1),
    )  # fmt: skip
    found: Any = measure(numeric, dt.simulation(2))
    assert found.reason == NO_CATEGORIES


@pytest.mark.exhaust
@pytest.mark.parametrize("public", [["age"], ["weight"]])
def test_reports_that_say_nothing_are_found_to_tell_in_one_release_of_forty(public: list[str]) -> None:
    """epsilon 1e-9, found where p <= .05 and the gap is positive: 2.5 % of 400; more than 28: below 1e-6."""
    hits = 0
    for seed in range(400):
        found: Any = measure(asked(1e-9, public=public, people=200, seed=seed), dt.simulation(1000 + seed))
        hits += found["verdict"] == "repeats people"
    assert hits <= 28
