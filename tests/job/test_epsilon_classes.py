"""A public column that sets epsilon: reports of each class have its noise, and each class its promise."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.statistics import expect_broken, expect_law

from dovetail.account.mixture import amplify_mixture
from dovetail.core.entropy import Entropy
from dovetail.core.errors import ConfigError
from dovetail.core.noise import People
from dovetail.job.build import build_collection, fresh
from dovetail.job.config import parse_config
from dovetail.job.run import run
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local
from dovetail.randomize.krr import KRR

TABLE = pl.DataFrame({"answer": ["no", "yes", "yes"] * 200, "privacy": ["careful", "open"] * 300})
ASKED: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"private": "answer", "public": ["privacy"], "categories": ["no", "yes", "maybe"]},
    "randomize": {"epsilon": 4.0, "by": "privacy", "epsilons": {"careful": 1.0, "nobody": 9.0}},
}


def test_everybody_has_the_noise_of_her_class(rng: Entropy) -> None:
    classes = EpsilonClasses(3, "class", {"a": 0.5}, 3.0)
    public = pl.DataFrame({"class": ["a", "b"] * 30_000})
    reports = classes.randomize(np.ones(60_000, dtype=np.int64), People(60_000, public), rng)
    for first, epsilon in ((0, 0.5), (1, 3.0)):
        counts = np.bincount(reports[first::2], minlength=3)
        expect_law(counts, KRR(3, epsilon).channel().matrix()[1])
        expect_broken(counts, KRR(3, 3.5 - epsilon).channel().matrix()[1])  # of the other class


@pytest.mark.exhaust
def test_a_release_promises_each_class_its_own_and_quotes_the_largest(tmp_path: Path) -> None:
    report = run(ASKED, table=TABLE, ledger=tmp_path)
    careful, open_ = amplify_mixture(3, [(300, 1.0), (300, 4.0)], delta=1e-6)
    assert report.evaluation.central.epsilon == max(careful.epsilon, open_.epsilon)
    assert report.evaluation.local.epsilon == 9.0  # what nobody spends more than, whoever takes part
    lines = [line for line in report.assumptions if "central epsilon" in line]
    assert len(lines) == 2 and "300 people with epsilon0 1 " in lines[0] and "300 people with epsilon0 4 " in lines[1]
    assert report.sanitized.columns == ["report"] and report.sanitized.height == 600
    estimates = report.evaluation.estimates
    assert estimates.estimator["name"] == "weighted" and "class and answer" in estimates.estimator["reason"]
    gap = np.abs(np.array(estimates.overall.value) - [1 / 3, 2 / 3, 0.0])
    assert np.all(gap < 6 * np.array(estimates.overall.standard_error))


def test_an_epsilon_under_a_misspelled_text_is_refused_and_not_left_out() -> None:
    """Else the careful ones would be given the noise of everybody else."""
    wrong = {**ASKED, "randomize": {"epsilon": 4.0, "by": "privacy", "epsilons": {"carefull": 1.0}}}
    with pytest.raises(ConfigError, match=r"nobody has 'carefull' in column 'privacy'; did you mean 'careful'\?"):
        build_collection(parse_config(wrong), fresh(parse_config(wrong)), table=TABLE)
    fine = {**ASKED, "randomize": {"epsilon": 4.0, "by": "privacy", "epsilons": {"carefull": 1.0, "careful": 1.0}}}
    build_collection(parse_config(fine), fresh(parse_config(fine)), table=TABLE)


@pytest.mark.exhaust
def test_those_who_are_not_honest_are_taken_for_the_careful_ones() -> None:
    classes = EpsilonClasses(3, "privacy", {"careful": 1.0}, 4.0)
    promises = classes.promises(People(600, TABLE, 400), delta=1e-6)
    expected = amplify_mixture(3, [(300, 1.0), (300, 4.0)], delta=1e-6, honest=[100, 300])
    assert [one.honest for _, _, one in promises] == [one.honest for one in expected]


def test_a_collection_without_its_classes_is_another_one() -> None:
    settings = parse_config({**ASKED, "mode": "rehearsal", "seed": 1})
    collection = build_collection(settings, fresh(settings), table=TABLE)
    changed = replace(collection, noise=Local(collection.randomizer))
    assert collection.as_configured and not changed.as_configured
    assert changed.terms() != collection.terms()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"randomize": {"epsilon": 1.0, "by": "privacy"}}, "give both or neither"),
        ({"randomize": {"epsilon": 1.0, "epsilons": {"a": 1.0}}}, "give both or neither"),
        ({"randomize": {**ASKED["randomize"], "randomizer": "unary"}}, "goes with randomizer"),
        ({"randomize": {**ASKED["randomize"], "by": "age"}}, r"\[randomize\] by: column 'age' is not listed"),
        ({"randomize": {**ASKED["randomize"], "epsilon": 41.0}}, "at most 40"),
        ({"randomize": {**ASKED["randomize"], "epsilons": {"careful": -1.0}}}, "greater than 0"),
        ({"promise": {"trust": "shuffler", "epsilon": 1.0}}, r"does not go with \[randomize\] by"),
        ({"estimate": {"by": ["privacy"]}}, r"does not go with \[randomize\] by"),
    ],
)
def test_what_does_not_go_with_classes_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        run({**ASKED, **changes}, table=TABLE)
    assert "\n" not in str(refused.value)
