"""Refinement answers with evidence: a post-processing, or an adversary who can tell."""

import numpy as np
import pytest
from tests.leak.exact_examples import SEEDS, channel

from dovetail.core.channel import KRRChannel
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.leak.qif import channels as refine
from dovetail.leak.qif.channels import cascade, constant, equivalent, identity, parallel, refined_by
from dovetail.leak.qif.inputs import normalize, uniform
from dovetail.leak.qif.vulnerability import posterior_vulnerability


def is_evidence(one: object, other: object, found: refine.Refinement) -> bool:
    """Recompute the evidence from the two channels alone."""
    one, other = np.asarray(one, dtype=float), np.asarray(other, dtype=float)
    if found.holds:
        witness = found.witness
        assert witness is not None and witness.min() >= 0.0
        np.testing.assert_allclose(witness.sum(axis=1), 1.0, atol=1e-12)
        return bool(np.abs(one @ witness - other).sum() <= 1e-9)
    assert found.gain is not None and found.gain.min() >= 0.0
    values = [posterior_vulnerability(uniform(len(one)), each, gain=found.gain) for each in (one, other)]
    assert values[1] - values[0] == pytest.approx(found.gap, abs=1e-12)
    return bool(found.gap > 0.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_post_processing_refines_and_the_way_there_is_found(seed: int) -> None:
    one = channel(seed, 3, 4)
    other = cascade(one, channel(seed, 4, 3))
    found = refined_by(one, other)
    assert found.holds and found.gain is None and found.gap == 0.0 and is_evidence(one, other, found)


@pytest.mark.parametrize("seed", range(30))
def test_random_channels_get_a_witness_or_an_adversary(seed: int) -> None:
    one, other = channel(seed, 3, 3), channel(seed, 3, 4)
    for first, second in ((one, other), (other, one)):
        assert is_evidence(first, second, refined_by(first, second))


@pytest.mark.exhaust
def test_random_channels_are_of_both_kinds_often_enough_to_test_both() -> None:
    answers = [refined_by(channel(s, 2, 3), channel(s, 2, 2)).holds for s in range(30)]
    assert 5 < sum(answers) < 25


@pytest.mark.parametrize("seed", SEEDS)
def test_channels_are_equivalent_if_and_only_if_they_refine_each_other(seed: int) -> None:
    one, other = channel(seed, 3, 3), channel(seed + 1, 3, 3)
    alike = one[:, [1, 2, 0]]
    for second in (alike, other, cascade(one, channel(seed, 3, 2))):
        mutual = refined_by(one, second).holds and refined_by(second, one).holds
        assert mutual == equivalent(one, second)
    assert equivalent(one, alike)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gap_is_largest_among_gains_of_its_span(seed: int) -> None:
    one, other = channel(seed, 3, 3), identity(3)
    found = refined_by(one, other)
    assert not found.holds
    assert found.gap == pytest.approx(found.residual / 3, rel=1e-9)  # duality: no adversary can do better
    rival = np.random.default_rng(seed).uniform(0.0, 2.0, size=(3, 3))
    values = [posterior_vulnerability(uniform(3), each, gain=rival) for each in (one, other)]
    assert values[1] - values[0] <= found.gap + 1e-12


def test_everything_lies_between_knowing_and_nothing() -> None:
    krr = KRRChannel(4, 3, 1)
    assert refined_by(identity(4), krr).holds and refined_by(krr, constant(4)).holds
    assert not refined_by(constant(4), krr).holds and not refined_by(krr, identity(4)).holds
    assert refined_by(parallel(krr, krr), krr).holds


def test_more_noise_refines_less_noise() -> None:
    keeps = [9, 5, 2, 1]
    for i, more in enumerate(keeps):
        for j, less in enumerate(keeps):
            assert refined_by(KRRChannel(3, more, 1), KRRChannel(3, less, 1)).holds == (i <= j)


def test_a_channel_that_leaks_more_to_one_adversary_may_leak_less_to_another() -> None:
    one = normalize([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    other = normalize([[7, 3], [3, 7], [3, 7]])  # tells secret 0 from the rest; R would need an entry of -1/10
    assert posterior_vulnerability(normalize([1] * 3), one) > posterior_vulnerability(normalize([1] * 3), other)
    found = refined_by(one, other)
    assert not found.holds and is_evidence(one, other, found)


def test_a_difference_below_what_the_program_resolves_is_never_an_adversary() -> None:
    near = np.array([[0.5 + 1e-11, 0.5 - 1e-11], [0.5, 0.5]])
    assert refined_by(constant(2), near).holds
    clear = np.array([[0.5 + 1e-7, 0.5 - 1e-7], [0.5, 0.5]])
    assert not refined_by(constant(2), clear).holds


def test_too_large_programs_and_other_secrets_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="The linear program has"):
        refined_by(identity(400), identity(400))
    with pytest.raises(ParameterError, match="`other` must have the 2 secrets"):
        refined_by(identity(2), identity(3))


def test_wrong_evidence_would_be_noticed() -> None:
    found = refine.Refinement(True, np.eye(2), 0.0, None, 0.0)
    assert not is_evidence(identity(2), [[0.5, 0.5], [0.5, 0.5]], found)


@pytest.mark.parametrize(("off", "same"), [(1e-12, True), (1e-10, True), (1e-8, False)])
def test_refining_each_other_and_being_equivalent_are_one_question_at_one_tolerance(off: float, same: bool) -> None:
    even = np.full((2, 2), 0.5)
    near = even + off * np.array([[1, -1], [0, 0]])
    assert equivalent(even, near) is same
    assert (refined_by(even, near).holds and refined_by(near, even).holds) is same
