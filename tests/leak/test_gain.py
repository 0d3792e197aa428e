"""Gains earn what their names say."""

from fractions import Fraction

import numpy as np
import pytest
from tests.leak.exact_examples import SEEDS, situation

from dovetail.core.errors import DataError, DovetailError, ParameterError, UnsupportedError
from dovetail.leak.qif import inputs as gain
from dovetail.leak.qif.inputs import joint, normalize
from dovetail.leak.qif.vulnerability import additive_leakage, posterior_vulnerability


@pytest.mark.parametrize("seed", SEEDS)
def test_the_identity_is_what_no_gain_means(seed: int) -> None:
    prior, channel, _ = situation(seed)
    assert posterior_vulnerability(prior, channel) == posterior_vulnerability(
        prior, channel, gain=gain.identity(prior.size)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_tries_earn_the_largest_entries(seed: int) -> None:
    prior, channel, _ = situation(seed)
    falling = np.sort(joint(prior, channel), axis=0)[::-1]
    for t in range(1, prior.size + 1):
        assert posterior_vulnerability(prior, channel, gain=gain.tries(prior.size, t=t)) == falling[:t].sum()


def test_with_two_values_distance_and_tries_are_the_identity() -> None:
    for same in (gain.distance([3, 7]), gain.tries(2, t=1)):
        assert (same == gain.identity(2)).all()


def test_distances_may_be_given_as_a_matrix_with_other_actions() -> None:
    guess_between = gain.distance([[0, 2], [1, 1], [2, 0]])
    half = Fraction(1, 2)
    assert guess_between.tolist() == [[1, 0], [half, half], [0, 1]]


def test_an_attribute_with_a_label_of_its_own_for_each_secret_is_the_identity() -> None:
    assert (gain.attribute(["x", "y", "z"]) == gain.identity(3)).all()


def test_an_attribute_is_learned_from_the_channel_of_its_labels() -> None:
    prior, labels = normalize([1, 2, 3, 4]), ["a", "b", "a", "b"]
    told = normalize(gain.attribute(labels).T)
    assert posterior_vulnerability(prior, told, gain=gain.attribute(labels)) == 1
    assert additive_leakage(prior, told, gain=gain.attribute([1, 1, 0, 0])) == 0  # .3 against .7 either way


@pytest.mark.parametrize(
    "bad", [[[1, 2, 3]], [1, 0], [], [[float("nan"), 1.0]], [["a", "b"]], [[True, False], [False, True]]], ids=repr
)
def test_gains_that_do_not_fit_are_refused(bad: object) -> None:
    with pytest.raises(DovetailError, match="`gain` must"):
        posterior_vulnerability([0.5, 0.5], [[1.0, 0.0], [0.0, 1.0]], gain=bad)  # type: ignore[arg-type]


def test_ranges_are_checked() -> None:
    for call in (lambda: gain.tries(3, t=4), lambda: gain.tries(3, t=0)):
        with pytest.raises(ParameterError, match="must be a whole number"):
            call()
    for metric in ([[-1, 2]], [3, 3], [[[1]]], 5):
        with pytest.raises(ParameterError, match="`metric` must be"):
            gain.distance(metric)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="sum the t largest"):
        gain.tries(100, t=5)


def test_labels_and_sizes_that_mean_nothing_are_refused() -> None:
    for labels in ([], [[1]]):
        with pytest.raises(ParameterError, match="`labels` must be"):
            gain.attribute(labels)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"`gain` must hold numbers from -1e\+100 to 1e\+100"):
        posterior_vulnerability([0.5, 0.5], np.eye(2), gain=[[1e308, 0], [0, 1e308]])
