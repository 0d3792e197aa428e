"""One object answers about epsilon, delta, attacks and bounds, in one round and in many."""

import math

import pytest

import dovetail as dt
from dovetail.account.accountant import Accountant
from dovetail.account.amplify import Subject
from dovetail.account.questions import JointReport
from dovetail.account.rounds import ShuffledRound
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import ParameterError
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.unary import Unary

SUBJECTS: list[Subject] = [
    2.0,
    KRR(k=2, epsilon=1.0),
    KRR(k=5, epsilon=2.0),
    Hadamard(k=8, epsilon=1.5),
    Unary(k=4, epsilon=2.0),
    DenseChannel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]]),
    JointReport((KRR(k=2, epsilon=1.0), KRR(k=3, epsilon=0.5))),
]


@pytest.mark.parametrize("subject", SUBJECTS, ids=repr)
@pytest.mark.parametrize("n", [7, 900])
def test_delta_is_the_inverse_of_epsilon_and_lies_above_what_is_reached(subject: Subject, n: int) -> None:
    known = Accountant(subject, n=n)
    found = known.epsilon(1e-4)
    assert found == dt.amplify(subject, n=n, delta=1e-4).epsilon
    assert known.attack(1e-4) == dt.amplify(subject, n=n, delta=1e-4).attack_lower <= found
    assert known.delta(found) <= 1e-4 * (1.0 + 1e-5)  # the smallest source may be another grid's
    assert known.delta(0.999 * found) > 1e-4
    assert known.delta(0.999 * found, near=1e-4) > 1e-4 >= known.delta(1.001 * found, near=1e-4)
    assert min(bound.epsilon for bound in known.bounds(1e-4) if bound.epsilon is not None) == found


@pytest.mark.parametrize("subject", SUBJECTS, ids=repr)
def test_delta_far_in_the_tail_is_not_that_of_a_scale_asked_about_first(subject: Subject) -> None:
    known = Accountant(subject, n=900)
    far = known.epsilon(1e-40)
    assert 0.9e-40 < known.delta(far) <= 1e-40 * (1.0 + 1e-5)


@pytest.mark.exhaust
def test_rounds_and_other_collections_compose_in_any_order() -> None:
    krr = KRR(k=5, epsilon=1.0)
    both = Accountant(krr, n=500, honest=400, rounds=3).compose(Accountant(2.0, n=900))
    swapped = Accountant(2.0, n=900).compose(Accountant(krr, n=500, honest=400, rounds=3))
    parts = [ShuffledRound.of(krr, 400, times=3), ShuffledRound(2.0, 900)]
    total = dt.compose(parts, delta=1e-6)
    assert both.epsilon(1e-6) == swapped.epsilon(1e-6) == total.epsilon
    assert both.attack(1e-6) == total.attack_lower
    assert both.delta(both.epsilon(1e-6)) == dt.account.composed_delta(parts, epsilon=both.epsilon(1e-6)).upper
    names = [bound.name for bound in both.bounds(1e-6)]
    assert names == [total.method, "basic composition", "advanced composition", "Renyi"]


def test_a_channel_that_tells_nothing_adds_nothing_to_other_rounds() -> None:
    nothing = Accountant(DenseChannel([[0.5, 0.5], [0.5, 0.5]]), n=10, rounds=4)
    once = Accountant(1.0, n=20)  # too few for what hides among everybody, which rounds of any randomizer do not use
    assert (nothing.epsilon(1e-6), nothing.delta(0.0), nothing.attack(1e-6), nothing.bounds(1e-6)) == (0, 0, 0, [])
    assert nothing.compose(once).epsilon(1e-6) == pytest.approx(once.epsilon(1e-6), rel=1e-3)


def test_a_local_delta_is_in_the_delta_of_all() -> None:
    pure, slack = Accountant(1.0, n=100, adaptive=True), Accountant(1.0, n=100, delta0=1e-9)
    assert slack.delta(0.5) > pure.delta(0.5) + 1e-7 * math.exp(-1.0)
    assert slack.log_ratio(slack.epsilon(1e-4), delta=1e-4) <= 0.0 < slack.log_ratio(0.1, delta=1e-4)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        (lambda: Accountant(1.0, n=0), "n"),
        (lambda: Accountant(1.0, n=5, honest=6), "honest"),
        (lambda: Accountant(1.0, n=5, rounds=0), "rounds"),
        (lambda: Accountant("krr", n=5), "epsilon0"),  # type: ignore[arg-type]
        (lambda: Accountant(1.0, n=5).compose(2), "other"),  # type: ignore[arg-type]
        (lambda: Accountant(1.0, n=5).delta(-1.0), "epsilon"),
        (lambda: Accountant(1.0, n=5).epsilon(2.0), "delta"),
    ],
)
def test_what_cannot_be_accounted_for_is_refused_by_name(wrong: object, name: str) -> None:
    with pytest.raises(ParameterError, match=f"`{name}`"):
        wrong()  # type: ignore[operator]
