"""What a report says about a value is what its channel says."""

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from tests.statistics import expect_mean

from dovetail.attack.experiment.evidence import indicators, log_odds, supports
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer, Reports
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary

LISTED: list[FrequencyRandomizer] = [*KRR.examples(), *Hadamard.examples(), *Unary.examples()]


def every_report(randomizer: FrequencyRandomizer) -> Reports:
    """All reports, in the order of the channel's columns."""
    count = randomizer.channel().shape[1]
    if isinstance(randomizer, Unary):
        return np.packbits(np.arange(count)[:, None] >> np.arange(randomizer.k) & 1, axis=1)
    return np.arange(count)


@pytest.mark.parametrize("randomizer", LISTED, ids=repr)
def test_support_is_the_likelihood_up_to_a_factor_of_the_report(randomizer: FrequencyRandomizer) -> None:
    support = supports(randomizer, every_report(randomizer))
    law = np.log(randomizer.channel().matrix().T)  # (reports, k)
    rest = law - log_odds(randomizer) * support
    np.testing.assert_allclose(rest, rest[:, :1] * np.ones(randomizer.k), rtol=1e-9)
    assert log_odds(randomizer) > 0 and support.any() and not support.all()


@pytest.mark.parametrize("randomizer", LISTED, ids=repr)
def test_indicators_are_unbiased(randomizer: FrequencyRandomizer) -> None:
    mean = randomizer.channel().matrix() @ indicators(randomizer, every_report(randomizer))
    np.testing.assert_allclose(mean, np.eye(randomizer.k), atol=1e-9)


@pytest.mark.parametrize("randomizer", LocalHashing.examples(), ids=repr)
def test_the_support_of_a_hash_is_its_likelihood_and_its_indicators_are_unbiased(
    randomizer: LocalHashing, rng: Entropy
) -> None:
    reports = randomizer.randomize(np.zeros(3000, dtype=np.int64), rng)
    support = supports(randomizer, reports)
    for (a, b, named), row in zip(reports[:50], support[:50], strict=True):
        law = np.log(randomizer.seed_channel(int(a), int(b)).matrix()[:, int(named)])
        np.testing.assert_allclose(law - law.min(), log_odds(randomizer) * (row.astype(float) - row.min()), atol=1e-9)
    expect_mean(indicators(randomizer, reports), np.eye(randomizer.k)[0])


def test_tables_beyond_memory_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="join values"):
        supports(KRR(k=10**6, epsilon=1.0), np.zeros(11, dtype=np.int64))


def test_reports_of_another_form_are_refused() -> None:
    other = SimpleNamespace(name="mine", k=2, check_reports=np.asarray)
    with pytest.raises(UnsupportedError, match="Reports of mine do not support values"):
        supports(cast(FrequencyRandomizer, other), np.zeros(3, dtype=np.int64))
