"""Every channel is row-stochastic, inverts, and tells the truth about its variance and its epsilon."""

from typing import Any

import numpy as np
import pytest
from tests.randomize.chosen import TABULATED

from dovetail.core.channel import DenseChannel, KRRChannel
from dovetail.randomize.hadamard import Hadamard

CHANNELS = [
    *(randomizer.channel() for randomizer in TABULATED),
    KRRChannel.of(4, keep=0.1),
    KRRChannel.of(3, keep=0.9),
    DenseChannel([[0.5, 0.25, 0.25], [0.1, 0.8, 0.1]]),
    Hadamard(k=20, epsilon=2.2).channel(),
]
STRUCTURED = [channel for channel in CHANNELS if not isinstance(channel, DenseChannel)]


def priors(channel: Any) -> np.ndarray:
    """The corners, the uniform law and a lopsided one."""
    inputs = channel.shape[0]
    lopsided = np.arange(1.0, inputs + 1) ** 2
    return np.vstack([np.eye(inputs), np.full(inputs, 1.0 / inputs), lopsided / lopsided.sum()])


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_rows_are_laws(channel: Any) -> None:
    rows = channel.matrix()
    assert rows.shape == channel.shape and rows.min() >= 0.0
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_output_law_is_the_matrix_product(channel: Any) -> None:
    np.testing.assert_allclose(channel.output_law(priors(channel)), priors(channel) @ channel.matrix(), atol=1e-14)
    np.testing.assert_allclose(channel.output_law(priors(channel)[-1]), priors(channel)[-1] @ channel.matrix())


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_invert_undoes_the_output_law(channel: Any) -> None:
    np.testing.assert_allclose(channel.invert(channel.output_law(priors(channel))), priors(channel), atol=1e-10)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_epsilon_is_the_largest_log_ratio_within_a_column(channel: Any) -> None:
    rows = channel.matrix()
    assert channel.epsilon == pytest.approx(np.log(rows.max(axis=0) / rows.min(axis=0)).max(), abs=1e-12)


@pytest.mark.parametrize("channel", CHANNELS, ids=repr)
def test_inverse_variance_equals_enumeration(channel: Any) -> None:
    rows, single = channel.matrix(), channel.invert(np.eye(channel.shape[1]))  # (outputs, inputs)
    per_value = rows @ single**2 - (rows @ single) ** 2
    got = channel.inverse_variance(priors(channel))
    np.testing.assert_allclose(got, priors(channel) @ per_value, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("channel", STRUCTURED, ids=repr)
def test_structured_channels_agree_with_their_dense_form(channel: Any) -> None:
    dense = DenseChannel(channel.matrix())
    assert dense.epsilon == pytest.approx(channel.epsilon, abs=1e-12)
    np.testing.assert_allclose(channel.output_law(priors(channel)), dense.output_law(priors(channel)), atol=1e-14)
    if isinstance(channel, KRRChannel):  # square: the inverse is unique
        seen = np.random.default_rng(1).dirichlet(np.ones(channel.k), size=5)
        np.testing.assert_allclose(channel.invert(seen), dense.invert(seen), atol=1e-9)
        np.testing.assert_allclose(
            channel.inverse_variance(priors(channel)), dense.inverse_variance(priors(channel)), rtol=1e-8, atol=1e-9
        )
