"""Channel algebra and equivalence."""

from fractions import Fraction

import numpy as np
import pytest
from tests.leak.exact_examples import SEEDS, channel, situation

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.core.errors import DovetailError, ParameterError, UnsupportedError
from dovetail.leak.qif import channels
from dovetail.leak.qif.channels import equivalent, reduced_channel
from dovetail.leak.qif.inputs import normalize, point
from dovetail.leak.qif.vulnerability import additive_leakage, posterior_vulnerability, prior_vulnerability


@pytest.mark.parametrize("seed", SEEDS)
def test_results_are_channels(seed: int) -> None:
    one, two, then = channel(seed, 3, 2), channel(seed + 1, 3, 2), channel(seed, 2, 4)
    share = Fraction(1, 3)
    for result in (
        channels.cascade(one, then),
        channels.parallel(one, then[:1].repeat(3, axis=0)),
        channels.repeat(one, times=3),
        channels.visible_choice(one, two, weight=share),
        channels.hidden_choice(one, two, weight=share),
        reduced_channel(one),
    ):
        assert (result.sum(axis=1) == 1).all() and result.min() >= 0
        DenseChannel(result)


@pytest.mark.parametrize("seed", SEEDS)
def test_units_and_orders(seed: int) -> None:
    one, two = channel(seed, 3, 2), channel(seed, 3, 4)
    assert (channels.cascade(channels.identity(3), one) == one).all()
    assert equivalent(channels.cascade(one, channels.constant(2)), channels.constant(3))
    assert equivalent(channels.parallel(one, channels.constant(3)), one)
    assert equivalent(channels.parallel(one, two), channels.parallel(two, one))
    assert equivalent(channels.parallel(one, channels.identity(3)), channels.identity(3))
    assert equivalent(channels.visible_choice(one, one, weight=Fraction(1, 4)), one)
    assert (channels.hidden_choice(one, one, weight=Fraction(1, 4)) == one).all()
    assert (channels.hidden_choice(one, channel(seed + 1, 3, 2), weight=1) == one).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_visible_choice_leaks_the_average_and_a_hidden_one_at_most_that(seed: int) -> None:
    prior, one, gain = situation(seed)
    two, share = channel(seed, *one.shape), Fraction(2, 7)

    def leak(each: object) -> Fraction:
        value = posterior_vulnerability(prior, each, gain=gain)
        assert isinstance(value, Fraction)
        return value

    mean = share * leak(one) + (1 - share) * leak(two)
    assert leak(channels.visible_choice(one, two, weight=share)) == mean
    assert leak(channels.hidden_choice(one, two, weight=share)) <= mean


@pytest.mark.parametrize("seed", SEEDS)
def test_both_outputs_tell_at_least_as_much_as_one(seed: int) -> None:
    prior, one, gain = situation(seed)
    values = [posterior_vulnerability(prior, channels.repeat(one, times=t), gain=gain) for t in (1, 2, 3)]
    assert values == sorted(values)


@pytest.mark.parametrize("seed", SEEDS)
def test_equivalence_ignores_order_names_and_splits_and_nothing_else(seed: int) -> None:
    one = channel(seed, 3, 3)
    shares = np.array([Fraction(1, 4), Fraction(3, 4)])
    split = np.hstack([one[:, [2, 0]], np.outer(one[:, 1], shares), 0 * one])
    assert equivalent(one, split) and equivalent(split, one)
    assert equivalent(one.astype(float), split.astype(float)) and equivalent(one, split.astype(float))
    nudged = one.copy()
    step = Fraction(1, 10**30)
    larger = int(np.argmax(nudged[0]))
    nudged[0, larger] -= step
    nudged[0, (larger + 1) % 3] += step
    assert not equivalent(one, nudged)
    assert equivalent(one.astype(float), nudged.astype(float))
    nudged[0, larger] -= Fraction(1, 10**8)
    nudged[0, (larger + 1) % 3] += Fraction(1, 10**8)
    assert not equivalent(one.astype(float), nudged.astype(float))


def test_columns_that_differ_in_the_last_bit_are_one_column() -> None:
    generator = np.random.default_rng(1)
    shapes = generator.dirichlet(np.ones(4), size=50)
    cells = np.repeat(shapes, 3, axis=0).T * generator.uniform(0.5, 2.0, size=150) * (1 + 1e-15)
    merged = reduced_channel(cells / cells.sum(axis=1, keepdims=True))
    assert merged.shape == (4, 50)


def test_columns_with_the_same_key_stay_apart() -> None:
    symmetric = KRRChannel(4, 5, 1)
    assert reduced_channel(symmetric).shape == (4, 4)
    half, one = Fraction(1, 2), np.sqrt(np.arange(1.0, 5.0))
    assert half * one[0] + half * one[3] != one[1]  # the sort key: 1.5 against 1.414..
    assert reduced_channel(normalize([[1, 1, 0], [0, 1, 1], [0, 1, 1], [1, 0, 1]])).shape == (4, 3)


def test_a_function_is_a_channel_of_zeros_and_ones() -> None:
    parity = channels.deterministic(lambda x: x % 2, range(4))
    assert parity.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert posterior_vulnerability(normalize([1] * 4), parity) == Fraction(1, 2)


def test_structured_channels_enter_the_algebra() -> None:
    krr = KRRChannel(3, 4, 1)
    twice = channels.cascade(krr, krr)
    np.testing.assert_allclose(twice, krr.matrix() @ krr.matrix(), rtol=1e-15)


@pytest.mark.exhaust
def test_what_does_not_fit_is_refused() -> None:
    two, three = channels.identity(2), channels.identity(3)
    for call, message in (
        (lambda: channels.cascade(two, three), "`then` must take the 2 outputs"),
        (lambda: channels.parallel(two, three), "`other` must have the 2 secrets"),
        (lambda: equivalent(two, three), "`other` must have the 2 secrets"),
        (lambda: channels.hidden_choice(two, channels.constant(2), weight=0.5), "`other` must have the outputs"),
        (lambda: channels.visible_choice(two, two, weight=1.5), "`weight` must be a number from 0 to 1"),
        (lambda: channels.visible_choice(two, two, weight=[0.5, 0.5]), "`weight` must be a number from 0 to 1"),
        (lambda: channels.visible_choice(two, two, weight=float("nan")), "`weight` must"),
        (lambda: channels.visible_choice(two, two, weight=True), "`weight` must"),
        (lambda: channels.repeat(two, times=0), "`times` must be"),
        (lambda: channels.deterministic(str, []), "number of secrets"),
    ):
        with pytest.raises(DovetailError, match=message):
            call()
    with pytest.raises(UnsupportedError, match="parallel channel has"):
        channels.repeat(channels.identity(10), times=7)
    with pytest.raises(ParameterError, match="whole number"):
        channels.constant(0)


def test_whole_numbers_beside_fractions_stay_exact_in_any_order() -> None:
    third = Fraction(1, 3)
    sure = channels.identity(2)
    for made in (channels.hidden_choice, channels.visible_choice):
        cells = made(sure, sure, weight=third)
        assert cells.dtype == object and (cells.sum(axis=1) == 1).all()
    assert prior_vulnerability(point(2, secret=0), gain=[[third, 0]]) == third
    assert posterior_vulnerability(point(2, secret=0), sure, gain=[[third, 0]]) == third
    assert isinstance(additive_leakage([0, 1], sure, gain=[[0, third]]), Fraction)
