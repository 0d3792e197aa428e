"""The study baselines follow their laws; they are not exported and nothing chooses them."""

import math

import numpy as np
import pytest
from tests.oracles.test_order import cycles
from tests.shuffle.symmetric import everything, index
from tests.statistics import expect_broken, expect_law
from tests.tiers import tiered

import dovetail
from dovetail.core.entropy import Entropy
from dovetail.shuffle.fitting.comparison import (
    cayley_log_normalizer,
    cayley_mallows,
    hamming_log_normalizer,
    hamming_mallows,
)


@pytest.mark.exhaust
@pytest.mark.parametrize("theta", [0.0, 0.4, 1.5])
@pytest.mark.parametrize("n", tiered([1, 4, 5], first=lambda n: n == 4))
def test_baselines_follow_their_laws(n: int, theta: float, rng: Entropy) -> None:
    perms = everything(n)
    cayley = np.array([n - cycles(pi) for pi in perms])
    hamming = (perms != np.arange(n)).sum(axis=1)
    for draw, distance, log_normalizer in (
        (cayley_mallows, cayley, cayley_log_normalizer),
        (hamming_mallows, hamming, hamming_log_normalizer),
    ):
        drawn = index(np.array([draw(n, theta, rng) for _ in range(15_000)]))
        counts = np.bincount(drawn, minlength=math.factorial(n))
        law = np.exp(-theta * distance - log_normalizer(n, theta))
        assert math.fsum(law) == pytest.approx(1.0, abs=1e-12)
        expect_law(counts, law)
        if theta > 1 and n > 1:
            wrong = np.exp(0.5 * np.log(law))
            expect_broken(counts, wrong / wrong.sum())


def test_baselines_are_not_exported() -> None:
    assert not any("cayley" in name.lower() or "hamming" in name.lower() for name in dir(dovetail))
