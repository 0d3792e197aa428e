"""How the noise in weighted sums of shares varies together, against every report that can be sent."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import ParameterError
from dovetail.core.estimate import Tally
from dovetail.core.noise import Noise, People
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.local import Local, report_covariance, sent_shares
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.users import UserNoise
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies

K = 3
WEIGHTS = np.array([[1.0, -2.0, 0.5], [0.25, 0.25, 4.0]])


def exact(noise: Noise, krr: Sequence[KRR], values: Sequence[int], people: People) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the sums over all reports of these people."""
    found, chances = [], []
    for reports in product(range(K), repeat=len(values)):
        tally = noise.tally(np.array(reports))
        chances.append(
            np.prod([one.channel().matrix()[x, y] for one, x, y in zip(krr, values, reports, strict=True)])
        )
        found.append(noise.moments(tally, WEIGHTS, people)[0])
    sums, law = np.array(found), np.array(chances)
    mean = law @ sums
    return mean, (sums - mean).T @ ((sums - mean) * law[:, None])


def test_sums_over_reports_are_unbiased_and_vary_as_is_said() -> None:
    krr, values = KRR(K, 1.2), [0, 2, 2, 1]
    shares = np.bincount(values, minlength=K) / len(values)
    people = People(len(values), pl.DataFrame())
    mean, covariance = exact(Local(krr), [krr] * 4, values, people)
    np.testing.assert_allclose(mean, WEIGHTS @ shares, atol=1e-12)
    worth = WEIGHTS @ krr.invert(np.eye(K), np.ones(K)).T
    np.testing.assert_allclose(covariance, report_covariance(krr.channel(), shares, worth) / 4, atol=1e-12)


def test_sums_over_reports_of_different_epsilons_weigh_people_by_how_truthful_they_are() -> None:
    noise = EpsilonClasses(K, "class", {"a": 0.5}, 2.0)
    public = pl.DataFrame({"class": ["a", "b", "b"]})
    krr, values = [KRR(K, 0.5), KRR(K, 2.0), KRR(K, 2.0)], [0, 2, 1]
    people = People(3, public)
    mean, covariance = exact(noise, krr, values, people)
    truthful = np.array([one.channel().contrast for one in krr])
    weighted = np.bincount(values, weights=truthful / truthful.sum(), minlength=K)
    np.testing.assert_allclose(mean, WEIGHTS @ weighted, atol=1e-12)
    each = [report_covariance(one.channel(), np.eye(K)[x], WEIGHTS) for one, x in zip(krr, values, strict=True)]
    np.testing.assert_allclose(covariance, sum(each) / truthful.sum() ** 2, atol=1e-12)
    counts = weighted * truthful.sum() + sum(one.channel().s for one in krr)  # on average
    said = noise.moments(Tally(counts, 3), WEIGHTS, people)[1]
    assert np.linalg.eigvalsh(said - covariance).min() > -1e-12  # an upper bound, whoever is in which class
    alike = EpsilonClasses(K, "class", {"a": 2.0}, 2.0)
    _, exactly = exact(alike, [KRR(K, 2.0)] * 3, values, people)
    shares = np.bincount(values, minlength=K) / 3
    one = alike.moments(Tally(3 * sent_shares(KRR(K, 2.0).channel(), shares), 3), WEIGHTS, people)[1]
    np.testing.assert_allclose(one, exactly, atol=1e-12)
    assert noise.sizes(people) == noise.sizes(People(3, pl.DataFrame(), counted={"b": 2, "a": 1}))


def test_sums_over_counts_with_dummies_vary_as_the_law_of_the_dummies_says() -> None:
    dummies, people = Dummies(K, 2.0, 1e-2), People(50, pl.DataFrame())
    noise = ShufflerNoise(dummies, OpenAnswers(K))
    value, covariance = noise.moments(
        Tally(np.array([10, 15, 25]) + dummies.reach, 50 + 3 * dummies.reach), WEIGHTS, people
    )
    np.testing.assert_allclose(value, WEIGHTS @ [0.2, 0.3, 0.5])
    np.testing.assert_allclose(covariance, WEIGHTS @ WEIGHTS.T * dummies.variance / 2500)


def test_sums_over_counts_with_dummies_of_people_vary_as_one_dummy_of_each() -> None:
    """Every person: no dummy, or one of the K symbols."""
    dummies, n = UserDummies(K, 0.75), 400
    noise, share = UserNoise(dummies, OpenAnswers(K)), 0.75 / K
    tally = Tally(np.array([100, 100, 200]) + 100, n + 300)
    value, covariance = noise.moments(tally, WEIGHTS, People(n, pl.DataFrame()))
    np.testing.assert_allclose(value, WEIGHTS @ [0.25, 0.25, 0.5])
    sums = np.column_stack([np.zeros(2), WEIGHTS])
    law = np.array([0.25, share, share, share])
    mean = sums @ law
    np.testing.assert_allclose(covariance, ((sums * law) @ sums.T - np.outer(mean, mean)) / n)


@pytest.mark.parametrize("noise", [ShufflerNoise(Dummies(K, 2.0, 1e-2), KRR(K, 1.0)), Local(KRR(K, 1.0))], ids=str)
def test_a_layer_below_the_dummies_adds_its_own(noise: Noise) -> None:
    added = 3 * noise.dummies.reach if isinstance(noise, ShufflerNoise) else 0
    tally = Tally(np.array([40, 30, 30]) + added // 3, 100 + added)
    _, covariance = noise.moments(tally, WEIGHTS, People(100, pl.DataFrame()))
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    plain = Local(KRR(K, 1.0)).moments(Tally(np.array([40, 30, 30]), 100), WEIGHTS, People(100, pl.DataFrame()))[1]
    assert bool(np.trace(covariance) > np.trace(plain)) == isinstance(noise, ShufflerNoise)


@pytest.mark.parametrize("dummies", [Dummies(2, 2.0, 1e-2), UserDummies(4, 0.5)], ids=["shuffler", "users"])
def test_dummies_of_other_answers_than_are_sent_are_refused(dummies: Dummies | UserDummies) -> None:
    """An answer of which there are no dummies would stand in the batch for everybody to see."""
    table = pl.DataFrame({"answer": ["a", "b", "c"] * 40})
    with pytest.raises(ParameterError, match="`dummies` must be of the 3 answers that are sent"):
        dt.Collection.of(
            table, private="answer", categories=["a", "b", "c"], randomizer=OpenAnswers(3), dummies=dummies
        )


@pytest.mark.exhaust
def test_the_matrix_of_many_answers_is_not_needed() -> None:
    krr, rng = KRR(5, 1.5), np.random.default_rng(1)
    dense, shares, worth = DenseChannel(krr.channel().matrix()), np.full(5, 0.2), rng.normal(size=(2, 5))
    np.testing.assert_allclose(
        report_covariance(krr.channel(), shares, worth), report_covariance(dense, shares, worth)
    )
    np.testing.assert_allclose(sent_shares(krr.channel(), shares), sent_shares(dense, shares))
    many = Local(KRR(4096, 5.0))
    value, off = many.moments(many.tally(np.arange(4096)), np.ones((1, 4096)), People(4096, pl.DataFrame()))
    assert value == pytest.approx(1.0) and off == pytest.approx(0.0, abs=1e-12)  # shares sum to 1, whatever is sent


def test_without_a_law_of_the_answers_linkage_is_its_bound() -> None:
    found = Local(KRR(4, 2.0)).linkage(dt.Uniform(100), People(100, pl.DataFrame()), None)
    assert (found.method, found.shares_known) == ("bound", found.values_known)
