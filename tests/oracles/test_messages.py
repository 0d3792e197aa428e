"""Several symbols in one message behind Gaussian dummies: every release of a few people, against the account."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dovetail.account.gaussian_dummies import Message, _delta_of, _terms, message_delta, message_epsilon, message_for
from dovetail.core.errors import ParameterError

Symbols = tuple[int, ...]  # one for each question
SLACK = 1e-13


def dummies_law(message: Message, question: int) -> list[float]:
    """By the formula of the paper, in the words of nobody else."""
    v, s = float(message.scale) / message.weights[question], message.reaches[question]
    weights = [math.exp(-(k**2) / (2 * v)) for k in range(-s, s + 1)]
    return [one / sum(weights) for one in weights]


def histogram_law(d: Sequence[float], symbols: Sequence[int], answers: int) -> np.ndarray:
    """The law of the released histogram of one question, an array with an axis for each answer."""
    size = len(d) + len(symbols)
    law = np.ones((1,) * answers)
    for answer in range(answers):
        held = sum(one == answer for one in symbols)
        axis = np.zeros(size)
        axis[held : held + len(d)] = d
        law = law * axis.reshape([-1 if place == answer else 1 for place in range(answers)])
    return law


def release_law(message: Message, people: Sequence[Symbols], answers: int) -> np.ndarray:
    """Of the histograms of all questions together, flat."""
    law = np.ones(1)
    for question in range(len(message.weights)):
        own = histogram_law(dummies_law(message, question), [one[question] for one in people], answers)
        law = np.outer(law, own.ravel()).ravel()
    return law


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


MESSAGES = [
    Message(Fraction(3, 2), (1,), (3,)),
    Message(Fraction(1), (1, 1), (2, 1)),
    Message(Fraction(5, 2), (1, 3), (2, 1)),
    Message(Fraction(1, 10), (2, 1), (1, 2)),
    Message(Fraction(2), (1, 2, 1), (1, 1, 1)),
]
EPSILONS = (0.0, 0.3, 1.0, 2.5, 6.0)


@pytest.mark.parametrize("message", MESSAGES, ids=repr)
def test_no_release_exceeds_the_account_and_people_whose_every_symbol_changes_reach_it(message: Message) -> None:
    """Whatever another person holds; where some symbols stay, and where coins choose the symbols, it is less."""
    m = len(message.weights)
    for other in ((0,) * m, tuple(range(m))):
        other = tuple(one % 2 for one in other)
        laws = {own: release_law(message, [own, other], 2) for own in product(range(2), repeat=m)}
        coin = 0.75 * laws[(0,) * m] + 0.25 * laws[(1,) * m]
        for epsilon in EPSILONS:
            bound = message_delta(message, epsilon)
            for own, there in combinations(laws, 2):
                exact = hockey_stick(laws[own], laws[there], epsilon)
                assert exact <= bound + SLACK
                if all(a != b for a, b in zip(own, there, strict=True)):
                    failures = bound - exact  # a sum over questions instead of their union
                    ends = [1.0 - (1.0 - dummies_law(message, q)[0]) ** 2 for q in range(m)]
                    assert failures <= 2.0 * sum(ends) - (1.0 - math.prod(1.0 - one for one in ends)) + 1e-9
            assert hockey_stick(coin, laws[(1,) * m], epsilon) <= bound + SLACK


def test_the_account_is_exact_where_laws_end_far_out() -> None:
    """Ends of negligible probability: then the sum over questions is their union."""
    message = Message(Fraction(1, 2), (1, 2), (5, 4))
    ends = sum(2.0 * dummies_law(message, q)[0] for q in range(2))
    for epsilon in EPSILONS:
        exact = hockey_stick(
            release_law(message, [(0, 0), (1, 0)], 2), release_law(message, [(1, 1), (1, 0)], 2), epsilon
        )
        assert exact <= message_delta(message, epsilon) <= exact * (1.0 + 1e-7) + ends**2 + SLACK


@pytest.mark.parametrize("together", [2, 3])
@pytest.mark.parametrize(
    "message", [Message(Fraction(3), (1, 2), (3, 2)), Message(Fraction(1, 10), (1,), (2,))], ids=repr
)
def test_people_who_move_together_are_accounted_together(message: Message, together: int) -> None:
    """Also where so many move a count beyond its dummies: then everything is seen."""
    m = len(message.weights)
    p, q = (release_law(message, [(own,) * m] * together, 2) for own in (0, 1))
    for epsilon in EPSILONS:
        exact, bound = hockey_stick(p, q, epsilon), message_delta(message, epsilon, together=together)
        assert exact <= bound + SLACK
        assert bound <= m * 2.0 * exact + SLACK


@pytest.mark.parametrize("rounds", [2, 3])
def test_rounds_are_questions_again(rounds: int) -> None:
    once, often = Message(Fraction(3), (1, 2), (6, 4)), Message(Fraction(3), (1, 2) * rounds, (6, 4) * rounds)
    for epsilon in EPSILONS:
        assert message_delta(once, epsilon, rounds=rounds) == pytest.approx(message_delta(often, epsilon), rel=1e-9)


@pytest.mark.exhaust
@pytest.mark.parametrize(
    "message", [Message(Fraction(6, 5), (1,), (6,)), Message(Fraction(3, 5), (1, 2), (3, 2))], ids=["one", "weights"]
)
def test_a_second_round_that_is_chosen_by_what_the_first_released_is_no_worse(message: Message) -> None:
    """Whole releases of both rounds; after each first one the worst second question there is, for each epsilon."""
    m = len(message.weights)
    p, q = (release_law(message, [(own,) * m], 2) for own in (0, 1))
    asked = list(product([(0, 1), (1, 0), (0, 0)], repeat=m))  # symbols of the two records in each question
    second = [tuple(release_law(message, [own], 2) for own in zip(*pairs, strict=True)) for pairs in asked]
    for epsilon in EPSILONS:
        factor, worst = math.exp(epsilon), np.zeros(p.size)
        for ours, others in second:
            seen = (ours > 0.0) | (others > 0.0)
            told = np.outer(p, ours[seen]) - factor * np.outer(q, others[seen])
            worst = np.maximum(worst, np.maximum(told, 0.0).sum(axis=1))
        exact, bound = float(worst.sum()), message_delta(message, epsilon, rounds=2)
        assert exact <= bound + SLACK
        failing = 2 * sum(2.0 * dummies_law(message, one)[-1] for one in range(m))  # charged as a sum, not a product
        assert bound <= exact * (1.0 + 1e-8) + failing**2 + SLACK


# docs/theory/several-symbols.md: epsilon, questions, standard deviation of a count, s
TABLE = [(1.0, 1, 5.98, 35), (1.0, 5, 13.4, 79), (1.0, 12, 20.7, 124), (1.0, 52, 43.1, 265), (0.5, 9, 34.2, None)]


@pytest.mark.parametrize(("epsilon", "questions", "sd", "reach"), TABLE)
def test_calibrated_noise_is_that_of_the_theory(epsilon: float, questions: int, sd: float, reach: int | None) -> None:
    message = message_for(weights=(1,) * questions, epsilon=epsilon, delta=1e-6)
    assert message_delta(message, epsilon) <= 1e-6
    assert math.sqrt(message.laws[0].variance) == pytest.approx(sd, rel=3e-3)
    assert reach is None or abs(message.reaches[0] - reach) <= 1
    assert message_for(weights=(1,), epsilon=epsilon, delta=1e-6, rounds=questions).scale == message.scale
    assert epsilon * (1.0 - 2e-3) <= message_epsilon(message, 1e-6) <= epsilon
    assert message_epsilon(message, message_delta(message, 700.0) / 2.0) == math.inf  # the ends alone are more


def test_delta_at_a_fixed_reach_does_not_fall_in_the_variance() -> None:
    """So reaches grow with it where it is searched; these four figures stand in the theory."""
    found = [message_delta(Message(Fraction(v), (1,) * 12, (124,) * 12), 1.0) for v in (429, 500, 600, 1_000)]
    np.testing.assert_allclose(found, [1e-6, 2.7e-7, 1.1e-6, 1.4e-4], rtol=0.05)


def test_a_question_more_never_promises_more() -> None:
    law = Message(Fraction(40), (1, 1, 4), (30, 30, 15))
    for epsilon in (0.2, 1.0, 2.0):
        parts = [message_delta(Message(law.scale, law.weights[:m], law.reaches[:m]), epsilon) for m in (1, 2, 3)]
        assert parts == sorted(parts) and parts[0] > 0.0


def test_noise_that_cannot_be_drawn_and_numbers_outside_their_ranges_are_refused() -> None:
    with pytest.raises(ParameterError, match="`epsilon` must be larger for 100,000 questions"):
        message_for(weights=(1,), epsilon=1e-3, delta=1e-9, rounds=100_000)
    with pytest.raises(ParameterError, match="`delta` must be above 0"):
        message_for(weights=(1,), epsilon=1.0, delta=0.0)
    with pytest.raises(ParameterError, match="`weights` must be"):
        Message(Fraction(1), (0,), (3,))
    with pytest.raises(ParameterError, match="`reaches` must be one for each of 2 weights"):
        Message(Fraction(1), (1, 1), (3,))
    with pytest.raises(ParameterError, match="`scale` must be a fraction"):
        Message(Fraction(-1), (1,), (3,))


@pytest.mark.parametrize(("rounds", "epsilon"), [(1, 0.05), (1, 0.1), (20, 0.5)])
def test_losses_on_a_coarser_grid_promise_no_more_and_hardly_less(rounds: int, epsilon: float) -> None:
    """Ten places in a typical loss: the variance grows by a 600th, epsilon by less than two."""
    message = Message(Fraction(2500), (1,), (400,))
    fine, coarse = (_terms(message, rounds, 1, points=points) for points in (1000, 10))
    assert coarse[0][0].step > 4.0 * fine[0][0].step
    assert _delta_of(fine, epsilon) <= _delta_of(coarse, epsilon) <= _delta_of(fine, epsilon * (1.0 - 2.0 / 600.0))
