"""Shares are estimated the same way at every size of the domain."""

import numpy as np
import pytest

from dovetail.core.entropy import Entropy
from dovetail.core.errors import DataError
from dovetail.estimate.frequency import estimate_frequencies, project_shares
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR


def test_without_noise_the_estimate_is_the_share(rng: Entropy) -> None:
    values = np.repeat([0, 1, 2], [50, 30, 20])
    estimate = estimate_frequencies(KRR(k=4, epsilon=60.0), KRR(k=4, epsilon=60.0).randomize(values, rng))
    np.testing.assert_allclose(estimate.value, [0.5, 0.3, 0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(estimate.population_error, np.sqrt([0.0025, 0.0021, 0.0016, 0.0]), atol=1e-9)
    assert estimate.n == 100 and estimate.bias_bound == 0.0


def test_the_standard_error_is_the_theorems_at_the_estimate(rng: Entropy) -> None:
    krr = KRR(k=3, epsilon=1.0)
    estimate = estimate_frequencies(krr, krr.randomize([0] * 900, rng))
    f = project_shares(estimate.value)
    p, s = krr.channel().p, krr.channel().s
    expected = np.sqrt((f * p * (1 - p) + (1 - f) * s * (1 - s)) / (p - s) ** 2 / 900)
    np.testing.assert_allclose(estimate.standard_error, expected, rtol=1e-12)


def test_large_domains_need_no_matrix(rng: Entropy) -> None:
    hadamard = Hadamard(k=1 << 16, epsilon=3.0)
    estimate = estimate_frequencies(hadamard, hadamard.randomize(rng.below(1 << 16, 10_000), rng))
    assert estimate.value.shape == (1 << 16,)


def test_reports_of_another_randomizer_are_refused() -> None:
    with pytest.raises(DataError, match=r"`reports` must be whole numbers in 0\.\.2"):
        estimate_frequencies(KRR(k=3, epsilon=1.0), np.array([3]))
