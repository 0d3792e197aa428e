"""Rehearsals attack themselves, beside the chance level, and say what the order tells about groups."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.job.surveys import numeric, rehearsal, survey

import dovetail as dt
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, DataError
from dovetail.core.missing import Missing
from dovetail.estimate.local import DebiasedEstimator, GroupShares
from dovetail.job.attacks import ColumnKnowledge, blind_guess, local_shares
from dovetail.job.config import GroupsSection
from dovetail.report.document import Evaluation, Learnability, MeasuredAttack
from dovetail.report.sentences import guess_sentences
from dovetail.table.reader import Survey

BY_AGE = {"shuffler": "within_groups", "groups": {"labels": "age"}}
QUICK = {"trials": 10, "targets": 300}


def go(table: pl.DataFrame | None = None, **changes: Any) -> dict[str, Evaluation]:
    """Lenses by shuffler."""
    report = dt.run(rehearsal(**changes), table=survey() if table is None else table)
    return {evaluation.shuffler: evaluation for evaluation in (*report.comparison, report.evaluation)}


def attack(evaluation: Evaluation, name: str) -> MeasuredAttack:
    assert not isinstance(evaluation.attacks, Missing)
    found = evaluation.attacks[name]
    assert isinstance(found, MeasuredAttack)
    return found


def learned(evaluation: Evaluation, by: str) -> Learnability:
    assert not isinstance(evaluation.learnability, Missing)
    return next(entry for entry in evaluation.learnability if entry.by == by)


@pytest.mark.exhaust
def test_every_attack_reads_an_unshuffled_release_and_none_a_uniform_one() -> None:
    table = survey().with_columns(income=np.random.default_rng(1).integers(0, 150, 600))
    every = go(
        table, data={"public": ["age", "income"]}, randomize={"epsilon": 4.0}, estimate={"by": ["age"]},
        shuffle={**BY_AGE, "compare": ["identity", "uniform"]}, attack={**QUICK, "similar": ["income"]},
    )  # fmt: skip
    keep = np.exp(4.0) / (np.exp(4.0) + 1.0)
    for name in ("likelihood",):
        found = attack(every["identity"], name)
        # success is a mean of 3,000 coins that fall right with probability `keep`: 6.1 standard errors
        assert abs(found.success - keep) < 6.1 * (keep * (1 - keep) / 3000) ** 0.5
        assert found.interval[0] > found.chance
        assert attack(every["uniform"], name).interval[0] < found.chance + 0.05
    blind = attack(every["uniform"], "likelihood")
    assert blind.success == pytest.approx(blind.chance)


@pytest.mark.exhaust
def test_the_headline_is_the_best_attack() -> None:
    """Without noise and shuffle, a vote of 25 people is worse than one's own report, though it is the first."""
    asked = rehearsal(
        randomize={"epsilon": 40.0}, shuffle={"shuffler": "identity", "groups": {"labels": "age"}},
        attack={**QUICK, "attacks": ["majority", "likelihood"]},
    )  # fmt: skip
    document = dt.run(asked, table=survey()).document()
    assert [found["name"] for found in document["attacks"]] == ["majority vote", "likelihood"]
    assert document["attack"] == document["attacks"][1] and document["attack"]["success"] == 1.0
    assert {"name", "success", "chance", "interval"} <= set(document["attack"])
    only = dt.run(rehearsal(shuffle=BY_AGE, attack=QUICK), table=survey()).document()
    assert [found["name"] for found in only["attacks"]] == ["likelihood", "majority vote"]


@pytest.mark.parametrize(("values", "ages", "right"), [
    ([0, 0, 1, 1, 1], [20, 20, 60, 60, 60], 1.0),  # everybody of one age holds one value: no report is needed
    ([0, 0, 0, 1], [20, 20, 20, 90], 0.75),  # the only one of her age tells nothing about herself
    ([0, 0, 1, 0, 1, 1], [20, 20, 20, 60, 60, 60], 0.5),  # of others: 2/3, less for who is counted herself
])  # fmt: skip
def test_the_blind_guess_knows_the_public_columns(values: list[int], ages: list[int], right: float) -> None:
    people = replace(Survey.of(pl.DataFrame({"age": ages})), values=np.array(values))
    known = ColumnKnowledge(people, GroupsSection(labels="age"), [])
    assert blind_guess(known, np.arange(len(ages))) == pytest.approx(right)


def test_the_blind_guess_beside_an_attack_knows_the_columns() -> None:
    """Each age holds one answer, all ages two: somebody who knows the ages is always right without a report."""
    table = survey().with_columns(secret=pl.when(pl.col("age") < 22).then(pl.lit("yes")).otherwise(pl.lit("no")))
    found = attack(go(table, shuffle=BY_AGE, attack={**QUICK, "trials": 2})["within_groups"], "likelihood")
    assert found.chance == 1.0


BEHIND = {
    "shuffler": {"promise": {"trust": "shuffler", "epsilon": 1.0}},
    "gaussian": {"promise": {"trust": "shuffler", "epsilon": 1.0, "dummies": "gaussian"}},
    "sparse": {"promise": {"trust": "shuffler", "epsilon": 1.0, "dummies": "sparse"}},
    "users": {"promise": {"trust": "users", "epsilon": 1.0}},
    "classes": {"randomize": {"randomizer": "krr", "epsilon": 1.0, "by": "town", "epsilons": {"north": 3.0}}},
}
HOURS = {"person": "id", "private": "hours", "public": ["age"], "lower": 0.0, "upper": 10.0}


@pytest.mark.parametrize("noise", BEHIND)
def test_dummies_and_classes_are_attacked_and_bounded(noise: str) -> None:
    asked = rehearsal(attack={**QUICK, "trials": 2, "similar": ["age"], "shares": "known"}) | {"estimate": {}}
    if noise != "classes":
        del asked["randomize"]
    found = dt.run(asked | BEHIND[noise], table=survey()).evaluation.attacks
    assert not isinstance(found, Missing)
    guessed, vote = found["likelihood"], found["majority vote"]
    assert isinstance(guessed, MeasuredAttack) and isinstance(guessed.bound, float)
    assert guessed.success <= guessed.bound < np.e / (1.0 + np.e) + 1e-3
    assert isinstance(vote, Missing) and "no place to read" in vote.reason


def test_numbers_are_attacked_behind_dummies_and_digits_are_not() -> None:
    asked = rehearsal(attack={**QUICK, "trials": 2, "similar": ["age"]}) | {"estimate": {}, "data": HOURS}
    del asked["randomize"]
    shuffler = {"trust": "shuffler", "epsilon": 1.0}
    found = dt.run(asked | {"promise": shuffler}, table=survey()).evaluation.attacks
    assert not isinstance(found, Missing) and isinstance(found["likelihood"], MeasuredAttack)
    digits = dt.run(asked | {"promise": shuffler | {"dummies": "digits"}}, table=survey()).evaluation.attacks
    assert isinstance(digits, Missing) and "mixed each by itself" in digits.reason


@pytest.mark.exhaust
def test_compared_shufflers_are_attacked_on_the_same_people() -> None:
    """Without noise and shuffle an own report is always right; so chance levels differ by the people alone."""
    every = go(shuffle={**BY_AGE, "compare": ["identity", "uniform"]}, attack={**QUICK, "targets": 40})
    assert len({attack(every[name], "likelihood").chance for name in every}) == 1


@pytest.mark.exhaust
def test_no_attack_is_reported_as_worse_than_the_blind_guess() -> None:
    """Whoever knows that the vote fails names the commonest value instead; what the vote itself reached is kept."""
    mixed = go(shuffle={**BY_AGE, "compare": ["uniform"]}, attack={**QUICK, "votes": 1})["uniform"].attacks
    assert not isinstance(mixed, Missing)
    vote = mixed["majority vote"]
    assert isinstance(vote, MeasuredAttack) and vote.alone < vote.chance == vote.success
    assert vote.mounted == "blind guess" and vote.interval[0] == vote.chance
    known = mixed["likelihood"]
    assert isinstance(known, MeasuredAttack) and known.success == known.chance


@pytest.mark.exhaust
def test_an_attack_that_does_not_apply_says_why() -> None:
    alpha = {"shuffler": "mallows", "alpha": 4.0, "groups": {"labels": "age", "radius": 1.0}}
    found = go(shuffle=alpha, attack=QUICK)["mallows"].attacks
    assert not isinstance(found, Missing) and isinstance(found["likelihood"], MeasuredAttack)
    by_town = go(shuffle={**BY_AGE, "groups": {"labels": "town"}}, attack=QUICK)["within_groups"].attacks
    assert not isinstance(by_town, Missing) and isinstance(by_town["likelihood"], MeasuredAttack)
    nobody = go(attack=QUICK)["uniform"].attacks
    assert isinstance(nobody, Missing) and "public columns" in nobody.reason
    report = dt.run(numeric(rehearsal(shuffle=BY_AGE, attack=QUICK)), table=survey())
    guessed = report.evaluation.attack
    assert (
        isinstance(guessed, MeasuredAttack)
        and guessed.guessed == "which of 10 equal parts of the range a number is in"
    )
    assert isinstance(report.evaluation.learnability, Missing)
    with pytest.raises(ConfigError, match="attacks"):
        go(attack={"attacks": []})


@pytest.mark.exhaust
@pytest.mark.parametrize("lonely", [1, 3])
def test_people_like_nobody_else_do_not_stop_the_likelihood_attack(lonely: int) -> None:
    table = survey().with_columns(age=pl.when(pl.col("id") < lonely).then(90 + pl.col("id")).otherwise(pl.col("age")))
    assert attack(go(table, shuffle=BY_AGE, attack=QUICK)["within_groups"], "likelihood").targets == 300


@pytest.mark.exhaust
def test_learnability_lies_between_no_shuffle_and_a_full_one() -> None:
    every = go(
        survey(3000), randomize={"epsilon": 4.0}, attack=QUICK, estimate={"by": ["age", "town"]},
        shuffle={**BY_AGE, "compare": ["identity", "uniform"]},
    )  # fmt: skip
    for by, groups in (("age", 4), ("town", 2)):
        kept, identity, uniform = (learned(every[name], by) for name in ("within_groups", "identity", "uniform"))
        assert kept.error == identity.error == kept.identity < 0.2, "nothing leaves its group"
        assert uniform.error == uniform.uniform == kept.uniform and kept.groups == groups
    # shares of yes by age are 0.2 to 0.5; told nothing, everybody gets the mean, 0.35: off by a mean of 0.1 in 0.15
    assert 0.4 < learned(every["uniform"], "age").error < 0.9
    small = go(estimate={"by": ["age"], "min_group_size": 500}, attack=QUICK)["uniform"].learnability
    assert isinstance(small, Missing) and "min_group_size" in small.reason
    none = go(estimate={"by": []}, attack=QUICK)["uniform"].learnability
    assert isinstance(none, Missing) and "list it in" in none.reason


def test_local_shares_are_the_debiased_group_shares() -> None:
    rng, groups = simulation(4), np.arange(200) % 7
    randomizer = dt.KRR(k=4, epsilon=1.0)
    reports = randomizer.randomize(np.arange(200) % 4, rng)
    local = DebiasedEstimator(GroupShares(dt.Groups.from_labels(groups), k=4), randomizer.channel())
    assert local_shares(randomizer, reports, groups) == pytest.approx(local.shares(reports, rng), abs=1e-12)


def places(similar: list[str], **columns: Any) -> Any:
    """Places that vote on the first ten people, within equal ages."""
    table = survey().with_columns(**columns)
    people = Survey.of(table.select("age", *similar))
    known = ColumnKnowledge(people, GroupsSection(labels="age"), similar)
    return known.places(np.arange(10), votes=25, rng=simulation(5))


def test_what_is_similar_does_not_depend_on_units() -> None:
    rng = np.random.default_rng(2)
    income, height = rng.normal(0, 1, 600), rng.normal(0, 1, 600)
    ours = places(["income", "height"], income=pl.Series(income), height=pl.Series(height))
    theirs = places(["income", "height"], income=pl.Series(100_000 * income + 7), height=pl.Series(height))
    np.testing.assert_array_equal(ours, theirs)
    constant = places(["income", "height"], income=pl.Series(income), height=pl.lit(3.0))
    np.testing.assert_array_equal(constant, places(["income"], income=pl.Series(income)))


def test_people_of_equal_texts_vote_first() -> None:
    colours = np.random.default_rng(2).choice(["red", "green", "blue"], 600)
    seats = places(["colour"], colour=pl.Series(colours))
    assert (colours[seats] == colours[:10, None]).all()
    assert (survey()["age"].to_numpy()[seats] == survey()["age"].to_numpy()[:10, None]).all()


@pytest.mark.exhaust
def test_a_run_compares_texts_and_numbers_that_are_known_besides() -> None:
    draw = np.random.default_rng(3)
    table = survey().with_columns(town=pl.Series(draw.choice(["a", "b"], 600)), size=pl.Series(draw.random(600)))
    public = {"data": {"public": ["age", "town", "size"]}, "shuffle": BY_AGE}
    quick = {"trials": 2, "targets": 50, "similar": ["town", "size"]}
    found = go(table, **public, attack=quick)["within_groups"].attacks
    assert not isinstance(found, Missing)
    assert all(isinstance(found[name], MeasuredAttack) for name in ("likelihood", "majority vote"))
    mixed = table.with_columns(town=pl.Series(["1", "b"] * 300))
    with pytest.raises(DataError, match="column 'town': 300 values are no numbers"):
        go(mixed, **public, attack=quick)


def test_numbers_known_besides_may_be_of_any_size() -> None:
    draw = np.random.default_rng(4)
    plain = draw.integers(0, 1000, 600).astype(np.float64)
    ours = places(["income"], income=pl.Series(plain))
    for factor in (2.0**1010, 2.0**-1010):
        np.testing.assert_array_equal(ours, places(["income"], income=pl.Series(plain * factor)))


def test_labels_that_rounding_alone_tells_apart_are_refused_before_anything_is_shuffled() -> None:
    table = survey().with_columns(dose=pl.Series([0.1 + 0.2, 0.3] * 300))
    with pytest.raises(DataError, match="`labels` must differ by more than rounding, got 0"):
        go(table, data={"public": ["age", "dose"]}, shuffle={**BY_AGE, "groups": {"labels": "dose"}}, attack=QUICK)


@pytest.mark.exhaust
def test_numbers_are_attacked_by_the_part_of_their_range_below_the_bound_and_above_chance() -> None:
    n, draws = 900, np.random.default_rng(5)
    ages = np.repeat(np.arange(9), n // 9)
    table = pl.DataFrame({"age": ages, "hours": np.clip(ages + draws.normal(0.0, 0.4, n), 0.0, 8.0)})
    data = {"private": "hours", "lower": 0.0, "upper": 8.0, "public": ["age"]}
    found = {}
    for shares in ("learned", "known"):
        asked = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "data": data,
                 "randomize": {"randomizer": "laplace", "epsilon": 8.0},
                 "shuffle": {"shuffler": "identity"},
                 "attack": {"trials": 3, "parts": 8, "shares": shares, "similar": ["age"]}}  # fmt: skip
        report = dt.run(asked, table=table)
        told = report.evaluation.attacks
        assert not isinstance(told, Missing)
        one = told["likelihood"]
        assert not isinstance(one, Missing) and isinstance(told["majority vote"], Missing)
        assert one.guessed == "which of 8 equal parts of the range a number is in" and one.guessed in one.remark
        assert isinstance(one.bound, float) and "local epsilon" in str(one.bound_by)
        assert one.success <= one.bound
        found[shares] = one
    # with a scale of one part, a report of one's own tells more than what 100 people of one age have in common; 2,700
    # guesses have a standard error below .01
    assert found["known"].success > found["known"].chance + 0.03
    assert found["learned"].success > found["known"].success - 0.1
    assert "One attack on which of 8 equal parts of the range a number is in was tried" in " ".join(
        guess_sentences(report.document())
    )


@pytest.mark.exhaust
def test_shares_of_a_kind_of_people_are_learned_across_many_households() -> None:
    n, draws = 1200, np.random.default_rng(6)
    kind = np.tile(["a", "a", "b", "b", "b"], n // 5)  # two and three: of two and two nothing tells which is which
    yes = draws.random(n) < np.where(kind == "a", 0.95, 0.1)
    table = pl.DataFrame(
        {"house": [f"h{i // 5}" for i in range(n)], "kind": kind, "answer": np.where(yes, "yes", "no")}
    )
    asked = {"schema_version": 1, "mode": "rehearsal", "seed": 1, "randomize": {"epsilon": 4.0},
             "data": {"private": "answer", "categories": ["no", "yes"], "public": ["house", "kind"]},
             "shuffle": {"shuffler": "within_groups", "groups": {"labels": "house"}},
             "attack": {"attacks": ["likelihood"], "similar": ["kind"], "trials": 4}}  # fmt: skip
    one = attack(dt.run(asked, table=table).evaluation, "likelihood")
    # who knows the kinds' shares is right in .92 on average, and of one report the other four tell hardly anything
    # against it; the standard error of 4,800 guesses is below .0085
    assert one.alone > 0.92 - 6 * 0.0085
