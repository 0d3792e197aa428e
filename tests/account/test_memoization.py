"""Permanent answers: one promise for all rounds while values are constant, and none where they change."""

from itertools import product
from math import exp, log

import numpy as np
import pytest

from dovetail.account.amplify import amplify
from dovetail.account.compose import memoized_guarantee
from dovetail.account.mechanism_law import mechanism_law
from dovetail.core.errors import UnsupportedError
from dovetail.randomize.krr import KRR

BOTH = KRR(2, 2.0)


def seen(rows: np.ndarray, fresh: np.ndarray, values: tuple[int, ...], rounds: int) -> dict[object, float]:
    """The law of the histograms of all rounds, linked by nobody."""
    found: dict[object, float] = {}
    k = len(rows)
    for kept in product(range(k), repeat=len(values)):
        weight = float(np.prod([rows[x, y] for x, y in zip(values, kept, strict=True)]))
        single: dict[tuple[int, ...], float] = {}
        for sent in product(range(k), repeat=len(values)):
            key = tuple(np.bincount(sent, minlength=k).tolist())
            single[key] = single.get(key, 0.0) + float(
                np.prod([fresh[y, z] for y, z in zip(kept, sent, strict=True)])
            )
        for transcript in product(single, repeat=rounds):
            mass = weight * float(np.prod([single[key] for key in transcript]))
            found[transcript] = found.get(transcript, 0.0) + mass
    return found


@pytest.mark.parametrize(("k", "n", "rounds"), [(2, 3, 2), (3, 2, 2), (2, 2, 3)])
def test_all_rounds_together_reveal_no_more_than_the_permanent_answers(k: int, n: int, rounds: int) -> None:
    permanent, fresh = KRR(k, 1.5), KRR(k, 1.0).channel().matrix()
    law, rows = mechanism_law(permanent, n=n)[1], permanent.channel().matrix()
    for epsilon in (0.0, 0.4, 1.0):
        bound = law.delta(epsilon).upper
        for others in product(range(k), repeat=n - 1):
            one, two = (seen(rows, fresh, (x, *others), rounds) for x in (0, 1))
            assert (
                sum(max(0.0, mass - exp(epsilon) * two.get(key, 0.0)) for key, mass in one.items()) <= bound + 1e-15
            )


def loss_of_a_change(rounds: int) -> float:
    """Largest log ratio between one change halfway and none, for one person, both stages at epsilon 2."""
    p, half = exp(2.0) / (1.0 + exp(2.0)), rounds // 2

    def block(ones: int, length: int, x: int) -> float:
        return sum(
            (p if y == x else 1 - p) * (p if y else 1 - p) ** ones * (1 - p if y else p) ** (length - ones)
            for y in (0, 1)
        )

    worst = 0.0
    for i, j in product(range(half + 1), repeat=2):
        changed = block(i, half, 0) * block(j, half, 1)
        worst = max(worst, abs(log(changed / block(i + j, rounds, 0))))
    return worst


def test_a_change_leaks_more_than_two_answers_and_the_promise_is_refused() -> None:
    assert loss_of_a_change(12) == pytest.approx(11.7, abs=0.1) and loss_of_a_change(52) == pytest.approx(
        51.7, abs=0.1
    )
    assert loss_of_a_change(12) > 2 * 2.0
    with pytest.raises(UnsupportedError, match="pattern of changes is not protected") as refused:
        memoized_guarantee(KRR(4, 2.0), n=1000, delta=1e-6, constant_values=False)
    assert "11.7 after 12 rounds and 51.7" in str(refused.value)
    with pytest.raises(UnsupportedError, match="constant_values=True"):
        memoized_guarantee(KRR(4, 2.0), n=1000, delta=1e-6, constant_values="yes")  # type: ignore[arg-type]


def test_constant_values_are_promised_what_one_round_is() -> None:
    promise = memoized_guarantee(KRR(4, 7.7), n=100_000, delta=1e-6, constant_values=True, honest=90_000)
    once = amplify(KRR(4, 7.7), n=100_000, delta=1e-6, honest=90_000)
    assert (promise.epsilon, promise.colluding, promise.honest_n) == (once.epsilon, 7.7, 90_000)
    assert "post-processing" in promise.source


def test_the_loss_of_constant_answers_stays_below_that_of_the_permanent_one() -> None:
    """Binary, both stages at 2: after 1, 2 and 5 rounds 1.33, 1.88 and just below 2."""
    p = BOTH.channel().p
    for rounds, expected in ((1, 1.33), (2, 1.88), (5, 2.0)):
        mass = [sum((p if y == x else 1 - p) * (p if y == 0 else 1 - p) ** rounds for y in (0, 1)) for x in (0, 1)]
        assert log(mass[0] / mass[1]) == pytest.approx(expected, abs=0.01) and log(mass[0] / mass[1]) <= 2.0
