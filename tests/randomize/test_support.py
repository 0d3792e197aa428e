"""What a report says about a value is what its channel says."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.randomize.chosen import TABULATED
from tests.statistics import expect_caught, expect_mean

from dovetail.core.channel import DenseChannel
from dovetail.core.entropy import Entropy
from dovetail.core.errors import UnsupportedError
from dovetail.core.stages import FrequencyRandomizer
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.sampling.pure_protocol import PureProtocol


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_support_is_the_likelihood_up_to_a_factor_of_the_report(randomizer: FrequencyRandomizer) -> None:
    support = randomizer.support(randomizer.all_reports())
    law = np.log(randomizer.channel().matrix().T)  # (reports, k)
    rest = law - randomizer.support_log_odds * support
    np.testing.assert_allclose(rest, rest[:, :1] * np.ones(randomizer.k), rtol=1e-9)
    assert randomizer.support_log_odds > 0 and support.any() and not support.all()


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_indicators_are_unbiased(randomizer: FrequencyRandomizer) -> None:
    mean = randomizer.channel().matrix() @ randomizer.indicators(randomizer.all_reports())
    np.testing.assert_allclose(mean, np.eye(randomizer.k), atol=1e-9)


@pytest.mark.parametrize("randomizer", [one for one in TABULATED if isinstance(one, KRR | PureProtocol)], ids=repr)
def test_tallies_that_are_said_to_count_support_do(randomizer: FrequencyRandomizer) -> None:
    for report in randomizer.all_reports():
        np.testing.assert_array_equal(randomizer.tally(report[None]), randomizer.support(report[None])[0])


@pytest.mark.parametrize("randomizer", LocalHashing.examples(), ids=repr)
def test_the_support_of_a_hash_is_its_likelihood_and_its_indicators_are_unbiased(
    randomizer: LocalHashing, rng: Entropy
) -> None:
    reports = randomizer.randomize(np.zeros(3000, dtype=np.int64), rng)
    support = randomizer.support(reports)
    for (a, b, named), row in zip(reports[:50], support[:50], strict=True):
        law = np.log(randomizer.seed_channel(int(a), int(b)).matrix()[:, int(named)])
        np.testing.assert_allclose(
            law - law.min(), randomizer.support_log_odds * (row.astype(float) - row.min()), atol=1e-9
        )
    expect_mean(randomizer.indicators(reports), np.eye(randomizer.k)[0])
    expect_caught(expect_mean, randomizer.indicators(reports), np.eye(randomizer.k)[1])  # of another value


def test_tables_beyond_memory_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="join values"):
        KRR(k=10**6, epsilon=1.0).support(np.zeros(11, dtype=np.int64))


def test_reports_of_another_form_are_refused() -> None:
    class Uneven(SimpleNamespace):
        support, _support = FrequencyRandomizer.support, FrequencyRandomizer._support

    law = DenseChannel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.4, 0.3]])
    other = Uneven(label="mine", k=3, check_reports=np.asarray, columns=np.asarray, channel=lambda: law)
    with pytest.raises(UnsupportedError, match="Reports of mine do not support values"):
        other.support(np.zeros(3, dtype=np.int64))
