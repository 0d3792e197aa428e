"""Rounds judged by their mechanism's own law: against every collection in every round, and the envelope."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import gammaln
from tests.tiers import EXHAUST, one_in

from dovetail.account.amplify import amplify
from dovetail.account.compose import compose, compose_upper, composed_delta
from dovetail.account.privacy_loss import MechanismCurve, envelope_pld
from dovetail.account.rounds import ShuffledRound
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import UnsupportedError
from dovetail.core.special import Reals
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace

Collection = tuple[tuple[float, float], ...]  # of every histogram: its probability under both values


@cache
def collections(mechanism: FrequencyRandomizer, n: int) -> list[tuple[Reals, Reals]]:
    """Both laws of the histogram, for every collection of the others' values and every ordered pair."""
    rows = mechanism.channel().matrix()
    found = []
    for others in combinations_with_replacement(range(len(rows)), n - 1):
        for pair in permutations(range(len(rows)), 2):
            laws: list[Counter[tuple[int, ...]]] = [Counter(), Counter()]
            for law, own in zip(laws, pair, strict=True):
                for y in product(range(rows.shape[1]), repeat=n):
                    people = (own, *others)
                    law[tuple(sorted(y))] += math.prod(rows[x, z] for x, z in zip(people, y, strict=True))
            seen = sorted(laws[0])
            found.append((np.array([laws[0][z] for z in seen]), np.array([laws[1][z] for z in seen])))
    return found


def worst(mechanism: FrequencyRandomizer, n: int, rounds: int, epsilon: float) -> float:
    """The largest delta over all collections and pairs, another one in every round."""
    cases, top = collections(mechanism, n), 0.0
    for chosen in combinations_with_replacement(cases, rounds):
        p, q = np.ones(1), np.ones(1)
        for first, second in chosen:
            p, q = np.multiply.outer(p, first).ravel(), np.multiply.outer(q, second).ravel()
        top = max(top, float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()))
    return top


SMALL = [(KRR(3, 1.0), 3), (KRR(2, 1.5), 4), (KRR(2, 0.3), 5), (Hadamard(2, 1.2), 3)]


@pytest.mark.exhaust
@pytest.mark.parametrize(("mechanism", "n"), one_in(len(SMALL), SMALL), ids=str)
def test_no_choice_of_collections_reveals_more_than_two_rounds_are_said_to(
    mechanism: FrequencyRandomizer, n: int
) -> None:
    for rounds in (1, 2):
        for share in (0.0, 0.2, 0.6, 0.9):
            epsilon = share * rounds * mechanism.epsilon
            truth = worst(mechanism, n, rounds, epsilon)
            assert truth <= composed_delta([ShuffledRound.of(mechanism, n, times=rounds)], epsilon=epsilon).upper


@EXHAUST
@pytest.mark.parametrize(("mechanism", "n"), [(KRR(3, 2.0), 4), (KRR(2, 3.0), 6)], ids=str)
def test_no_choice_of_collections_of_more_people_reveals_more(mechanism: FrequencyRandomizer, n: int) -> None:
    for share in (0.0, 0.1, 0.3, 0.5, 0.8):
        epsilon = share * 2 * mechanism.epsilon
        truth = worst(mechanism, n, 2, epsilon)
        assert truth <= composed_delta([ShuffledRound.of(mechanism, n, times=2)], epsilon=epsilon).upper


def hockey_stick(values: Reals, cells: NDArray[np.int64], step: float, epsilon: float) -> float:
    law = envelope_pld(cells, values, step=step)
    return law.infinity + float(law.masses @ np.maximum(0.0, -np.expm1(epsilon - law.losses)))


def test_the_envelope_is_a_probability_and_gives_convex_values_back() -> None:
    cells, step = np.arange(12) * 3, 0.1
    values = 0.3 * np.exp(-1.7 * step * cells)
    law = envelope_pld(cells, values, step=step)
    assert law.masses.sum() + law.infinity == pytest.approx(1.0, abs=1e-12)
    q = law.masses @ np.exp(-law.losses)
    assert q <= 1.0 + 1e-9
    for cell, value in zip(cells, values, strict=True):
        assert hockey_stick(values, cells, step, step * float(cell)) == pytest.approx(value, rel=1e-9)
        mirrored = 1.0 - math.exp(-step * float(cell)) * (1.0 - value)
        assert hockey_stick(values, cells, step, -step * float(cell)) == pytest.approx(mirrored, rel=1e-9)


def test_loose_values_give_no_negative_mass_and_stay_between_the_chords() -> None:
    rng = random.Random("loose")
    for _ in range(50):
        cells, step = np.arange(20), 0.05 + 0.2 * rng.random()
        true = 0.5 * np.exp(-1.2 * step * cells) * 0.4
        values = true * np.exp([0.8 * rng.random() for _ in cells])
        law = envelope_pld(cells, values.copy(), step=step)
        assert law.masses.min() >= 0.0 and law.masses.sum() + law.infinity == pytest.approx(1.0, abs=1e-9)
        for j in range(20):
            found = hockey_stick(values.copy(), cells, step, step * j)
            assert true[j] * (1 - 1e-9) <= found <= values[j] * (1 + 1e-9)


def test_delta_at_0_is_lowered_to_the_chord_to_the_mirror_image() -> None:
    law = envelope_pld(np.array([0, 1, 2]), np.array([0.9, 0.01, 0.0]), step=0.1)
    at_0 = law.infinity + float(law.masses @ np.maximum(0.0, -np.expm1(-law.losses)))
    assert at_0 < 0.07


@pytest.mark.exhaust
def test_known_mechanisms_of_known_people_are_promised_more() -> None:
    """The epsilons of the theory note: k = 1024, 16 and 1000 rounds."""
    for rounds, expected in ((16, 0.1066), (1000, 0.975)):
        own = compose([ShuffledRound.of(KRR(1024, 4.0), 10**5, times=rounds)], delta=1e-6)
        assert own.epsilon is not None and own.epsilon <= 1.02 * expected
        assert own.method == "privacy loss of the mechanisms" and own.lower is not None and own.lower > 0.02


@EXHAUST
def test_rounds_of_different_mechanisms_compose_in_any_order_and_never_lose_to_the_clone_pairs() -> None:
    rounds = [
        ShuffledRound.of(KRR(2, 1.0), 2000, times=5),
        ShuffledRound.of(Hadamard(50, 2.0), 5000),
        ShuffledRound(1.0, 10_000, times=2),
    ]
    mixed = compose(rounds, delta=1e-6)
    assert mixed.epsilon == compose(rounds[::-1], delta=1e-6).epsilon
    clones = compose([ShuffledRound(part.epsilon0, part.n, times=part.times) for part in rounds], delta=1e-6)
    assert mixed.epsilon is not None and clones.epsilon is not None and mixed.epsilon < clones.epsilon


@pytest.mark.exhaust
def test_one_round_is_what_amplify_says_and_more_rounds_are_more() -> None:
    mechanism, seen = KRR(3, 1.0), 0.0
    for rounds in (1, 2):
        found = compose([ShuffledRound.of(mechanism, 1000, times=rounds)], delta=1e-6).epsilon
        assert found is not None and found > seen
        seen = found
    one = compose([ShuffledRound.of(mechanism, 1000)], delta=1e-6).epsilon
    promised = amplify(mechanism, n=1000, delta=1e-6).epsilon
    assert one is not None and promised * (1 - 1e-6) <= one <= promised * 1.0005


def test_what_the_law_does_not_cover_is_refused() -> None:
    krr = KRR(3, 1.0)
    for wrong in ({"kind": "clones"}, {"delta0": 1e-9}):
        with pytest.raises(UnsupportedError, match="own law is proved"):
            ShuffledRound(1.0, 100, mechanism=krr, **wrong)
    with pytest.raises(UnsupportedError, match="its own epsilon0"):
        ShuffledRound(0.9, 100, mechanism=krr)


def test_rounds_of_few_people_count_large_losses_by_the_blanket() -> None:
    epsilon0, n, rounds, step = 4.0, 400, 10, 1e-3
    decay = math.exp(-epsilon0 / 2)
    middle, tails = (1.0 - decay) / (1.0 + decay), 1.0 / (1.0 + decay)
    rows = np.array(
        [[tails * decay**y, middle * decay ** abs(1 - y), tails * decay ** (2 - y)] for y in range(3)]
    )  # three values, what is beyond an end counted there
    low, high = (side.ravel() for side in np.meshgrid(np.arange(n), np.arange(n)))
    low, high = low[low + high < n], high[low + high < n]
    counts = np.stack([low, n - 1 - low - high, high])
    known = np.exp(gammaln(n) - gammaln(counts + 1.0).sum(axis=0) + np.log(rows[0]) @ counts)

    def seen(own: int) -> Reals:
        """The law of the histogram of all reports."""
        law = np.zeros((n + 1, n + 1))
        for place, chance in enumerate(rows[own]):
            law[low + (place == 0), high + (place == 2)] += known * chance
        return law.ravel()

    first, second = seen(0), seen(2)
    used = (first > 0.0) & (second > 0.0)
    cells = np.floor(np.log(first[used] / second[used]) / step).astype(np.int64)  # rounded down: no loss is too large
    size = 1 << 17
    law = np.fft.irfft(np.fft.rfft(np.bincount(cells - cells.min(), first[used], size)) ** rounds, size)
    losses = step * (rounds * cells.min() + np.arange(size))

    def exact(epsilon: float) -> float:
        above = losses > epsilon
        return float(law[above] @ -np.expm1(epsilon - losses[above]))

    part = ShuffledRound.of(Laplace(0.0, 1.0, epsilon0, grid=0.5), n, times=rounds)
    promised = compose_upper([part], delta=1e-6).epsilon
    assert promised is not None and promised < 8.06  # by all pairs of values alone 9.1
    assert exact(promised) <= 1e-6 < exact(7.28)


@pytest.mark.parametrize("grid", [0.5, pytest.param(None, marks=pytest.mark.exhaust)])
def test_a_mechanism_without_a_law_composes_like_any_other(grid: float | None) -> None:
    laplace = ShuffledRound.of(Laplace(0.0, 1.0, epsilon=0.5, grid=grid), 50, times=3)
    found, generic = (compose([part], delta=1e-6).epsilon for part in (laplace, ShuffledRound(0.5, 50, times=3)))
    assert found is not None and generic is not None and found <= generic * 1.01


@pytest.mark.exhaust
def test_a_channel_is_a_mechanism() -> None:
    channel = DenseChannel([[0.6, 0.4], [0.5, 0.5]])
    part = ShuffledRound.of(channel, 500, times=4)
    assert part.epsilon0 == channel.epsilon and isinstance(part.dominating, MechanismCurve)
    assert compose([part], delta=1e-6).epsilon is not None
