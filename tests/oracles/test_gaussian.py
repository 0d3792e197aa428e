"""Gaussian noise on a grid: the law itself, every collection of two people, and the numbers of the theory note."""

import math

import numpy as np
import pytest
from tests.oracles.test_several_questions import worst
from tests.tiers import EXHAUST

from dovetail.account.amplify import amplify
from dovetail.account.mechanism_law import mechanism_law
from dovetail.core.errors import ParameterError
from dovetail.randomize.vectors.gaussian import gaussian_channel


def test_every_row_is_clamped_discrete_gaussian_noise() -> None:
    rows, sigma, reach = gaussian_channel(steps=3, sigma=2.0).matrix(), 2.0, 13
    total = sum(math.exp(-0.5 * (z / sigma) ** 2) for z in range(-200, 201))
    for x, row in enumerate(rows):
        for place, mass in enumerate(row):
            y = place - reach
            held = [z for z in range(-200, 201) if min(max(x + z, -reach), 3 + reach) == y]
            assert mass == pytest.approx(sum(math.exp(-0.5 * (z / sigma) ** 2) for z in held) / total, rel=1e-9)
    assert rows.sum(axis=1) == pytest.approx(np.ones(4))


def test_no_collection_of_two_people_is_more_exposed_than_its_law_says() -> None:
    channel = gaussian_channel(steps=2, sigma=0.7)
    law = mechanism_law(channel, n=2)[1]
    for epsilon in (0.0, 0.5, 2.0):
        exact = worst(channel.matrix(), 2, math.exp(epsilon))
        assert exact <= law.delta(epsilon).upper * (1 + 1e-12)


@EXHAUST
def test_the_promises_are_those_of_the_theory_note_or_better() -> None:
    """Attacks and upper ends there are for the pair of the ends; here all pairs of nine values and all others count.

    For 10,000 people another pair has a larger bound, a tenth above the attack.
    """
    table = ((1, 10**4, 0.0458, 0.0504), (1, 10**5, 0.01302, 0.01304), (2, 10**6, 0.00134, 0.00135))
    for sigma, n, attack, upper in table:
        found = amplify(gaussian_channel(steps=8, sigma=8.0 * sigma), n=n, delta=1e-6)
        assert 0.995 * attack <= found.attack_lower <= found.epsilon <= 1.001 * upper


@pytest.mark.exhaust
def test_a_law_too_wide_for_the_integral_is_bounded_without_it() -> None:
    found = amplify(gaussian_channel(steps=1, sigma=0.5), n=100_000, delta=1e-3)
    assert found.attack_lower <= found.epsilon < math.inf


def test_parameters_out_of_range_are_refused() -> None:
    for wrong in ({"steps": 0}, {"steps": 65}, {"sigma": 0.0}, {"sigma": 1e4}):
        with pytest.raises(ParameterError, match=f"`{next(iter(wrong))}` must be"):
            gaussian_channel(**{"steps": 4, "sigma": 1.0, **wrong})  # type: ignore[arg-type]
