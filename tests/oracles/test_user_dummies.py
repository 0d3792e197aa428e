"""Dummies of people against every collection of a few of them: nobody's promise is exceeded, and all are reached."""

from itertools import product
from math import exp

import numpy as np
import pytest

from dovetail.account.dummies import UserDummiesLaw, user_dummies_for, user_dummies_guarantee

Law = dict[tuple[int, ...], float]


def grown(law: Law, row: np.ndarray) -> Law:
    """The histogram with one more message, or none (the last entry of the row)."""
    found: Law = {}
    for key, mass in law.items():
        for symbol, more in enumerate(row):
            one = key if symbol == len(key) else (*key[:symbol], key[symbol] + 1, *key[symbol + 1 :])
            found[one] = found.get(one, 0.0) + mass * float(more)
    return found


def released(values: tuple[int, ...], k: int, rate: float, *, honest: int) -> Law:
    """The law of the histogram of people with these values, of whom the first so many send dummies."""
    law: Law = {tuple(np.bincount(values, minlength=k).tolist()): 1.0}
    dummy = np.append(np.full(k, rate / k), 1.0 - rate)
    for _ in range(honest):
        law = grown(law, dummy)
    return law


def hockey_stick(p: Law, q: Law, factor: float) -> float:
    return sum(max(0.0, mass - factor * q.get(key, 0.0)) for key, mass in p.items())


@pytest.mark.parametrize(("k", "n"), [(2, 4), (3, 3), (4, 2)])
@pytest.mark.parametrize("rate", [0.25, 0.75, 1.0])
@pytest.mark.parametrize("missing", [0, 1])
def test_no_collection_exceeds_the_promise_and_all_of_them_reach_it(
    k: int, n: int, rate: float, missing: int
) -> None:
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        bound = UserDummiesLaw(k, n - missing, rate).delta(epsilon)
        for values in product(range(k), repeat=n):
            for other in range(1, k):
                there = ((values[0] + other) % k, *values[1:])
                p, q = (released(held, k, rate, honest=n - missing) for held in (values, there))
                exact = hockey_stick(p, q, exp(epsilon))
                assert exact <= bound
                assert exact == pytest.approx(bound, rel=1e-7)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_delta_of_a_known_number_of_dummies_is_the_sum_over_all_outcomes_and_falls(k: int) -> None:
    before = 2.0
    for dummies in range(7):
        m, exact = dummies + 1, 0.0
        for drawn in product(range(k), repeat=m):
            exact += max(0.0, drawn.count(0) - exp(0.4) * drawn.count(1)) * k / m / k**m
        found = UserDummiesLaw(k, dummies, 1.0).delta(0.4)
        assert exact <= found <= exact * (1 + 1e-8) + 1e-15
        assert UserDummiesLaw(k, dummies, 1.0).ends(0.4).lower <= exact * (1 + 1e-12)
        assert found <= before + 1e-12
        before = found


@pytest.mark.parametrize("lists", [(2, 2), (2, 4), (2, 2, 2), (3, 3)], ids=str)
@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_people_who_send_several_symbols_are_promised_no_less_than_all_releases_say(
    lists: tuple[int, ...], rate: float
) -> None:
    """Of two records that differ in the first symbols only, or in all; dummies are of all lists alike."""
    k, starts = sum(lists), np.cumsum((0, *lists[:-1])).tolist()
    for honest in (1, 2, 3):
        for moved in range(1, len(lists) + 1):
            records = [[start + (which and place < moved) for place, start in enumerate(starts)] for which in (0, 1)]
            p, q = (released(tuple(map(int, one)), k, rate, honest=honest) for one in records)
            for epsilon in (0.0, 0.7, 3.0, 12.0):
                bound = UserDummiesLaw(k, honest, rate, len(lists)).delta(epsilon)
                assert hockey_stick(p, q, exp(epsilon)) <= bound + 1e-12, (honest, moved, epsilon)


def test_a_delta_on_the_plateau_is_kept_by_the_epsilon_where_it_begins() -> None:
    k, n, rate = 3, 3, 0.75
    law = UserDummiesLaw(k, n, rate)
    p, q = (released((x, 0, 0), k, rate, honest=n) for x in (0, 1))
    for epsilon in (1.2, 2.0, 5.0):
        delta = hockey_stick(p, q, exp(epsilon)) * (1.0 + 1e-7)
        found = law.epsilon(delta)
        assert hockey_stick(p, q, exp(found)) <= delta
        assert found <= epsilon


@pytest.mark.parametrize(
    ("k", "honest", "epsilon", "delta"), [(12, 90, 4.0, 0.05), (20, 60, 3.0, 0.2), (6, 40, 5.0, 0.03)]
)
def test_dummies_that_are_enough_for_an_epsilon_promise_it_on_a_plateau(
    k: int, honest: int, epsilon: float, delta: float
) -> None:
    dummies = user_dummies_for(k=k, epsilon=epsilon, delta=delta, honest=honest)
    assert user_dummies_guarantee(dummies, n=honest, delta=delta).epsilon <= epsilon
