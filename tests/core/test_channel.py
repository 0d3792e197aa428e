"""Channels refuse what is not one, and stay small where a matrix would not."""

import numpy as np
import pytest

from dovetail.core.channel import DenseChannel, HadamardChannel, KRRChannel, hadamard_transform
from dovetail.core.errors import DataError, ParameterError, UnsupportedError


@pytest.mark.parametrize("bad", [[], [0.5, 0.5], [[[1.0]]], np.empty((0, 3))], ids=repr)
def test_rows_must_be_a_matrix(bad: object) -> None:
    with pytest.raises(ParameterError, match="`rows` must be a matrix"):
        DenseChannel(bad)


def test_rows_must_be_probabilities_that_sum_to_one() -> None:
    with pytest.raises(DataError, match=r"entry \(1, 0\)"):
        DenseChannel([[0.5, 0.5], [-0.1, 1.1]])
    with pytest.raises(DataError, match=r"entry \(0, 1\)"):
        DenseChannel([[0.5, float("nan")]])
    with pytest.raises(DataError, match="row 1 sums to"):
        DenseChannel([[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(DataError, match="row 0 sums to"):  # mass that is missing is a report that nobody expects
        DenseChannel([[0.5, 0.4], [0.5, 0.5]])


def test_a_dense_channel_owns_a_frozen_copy() -> None:
    rows = np.array([[0.5, 0.5], [0.25, 0.75]])
    channel = DenseChannel(rows)
    rows[0] = 9.0
    assert channel.matrix()[0, 0] == 0.5 and not channel.matrix().flags.writeable


def test_a_zero_beside_a_positive_entry_is_an_infinite_epsilon() -> None:
    assert DenseChannel([[1.0, 0.0], [0.5, 0.5]]).epsilon == float("inf")
    assert DenseChannel([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]).epsilon == pytest.approx(np.log(2))
    assert DenseChannel([[0.5, 0.5]]).epsilon == 0.0


def test_channels_that_forget_the_value_cannot_be_inverted() -> None:
    for channel in (DenseChannel([[0.5, 0.5], [0.5, 0.5]]), KRRChannel(2, 3, 3), HadamardChannel(2, 1, 4, 3, 3)):
        with pytest.raises(UnsupportedError):
            channel.invert(np.full(channel.shape[1], 1.0 / channel.shape[1]))


@pytest.mark.parametrize("keep", [0.001, 0.25, 0.5, 1 / 3, 0.999])
@pytest.mark.parametrize("k", [2, 4, 1000])
def test_a_given_probability_of_keeping_is_met_to_the_last_bit(k: int, keep: float) -> None:
    assert KRRChannel.of(k, keep).p == keep


@pytest.mark.exhaust
def test_large_domains_answer_without_a_matrix() -> None:
    k = 1 << 20
    for channel in (KRRChannel(k, 5 << 40, 1 << 40), HadamardChannel(k, 2, k, 3 << 40, 1 << 40)):
        with pytest.raises(UnsupportedError, match="exceeds 10,000,000"):
            channel.matrix()
        shares = np.zeros(k)
        shares[[0, k - 1]] = 0.25, 0.75
        law = channel.output_law(shares)
        assert law.sum() == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(channel.invert(law), shares, atol=1e-7)
        assert np.all(channel.inverse_variance(shares) > 0)


def test_tiny_epsilons_keep_their_contrast() -> None:
    channel = KRRChannel(2, (1 << 63) + 1, (1 << 63) - 1)
    assert channel.contrast == 2.0**-63  # p - s in floating point would be 0


def test_the_transform_is_the_hadamard_matrix() -> None:
    index = np.arange(16)
    matrix = 1.0 - 2.0 * (np.bitwise_count(index[:, None] & index) % 2)
    values = np.random.default_rng(1).normal(size=(3, 16))
    np.testing.assert_allclose(hadamard_transform(values), values @ matrix, atol=1e-12)
    with pytest.raises(ParameterError, match="power of two"):
        hadamard_transform(np.zeros(6))
