"""How many people are enough; the other inverse question is tested with `amplify`."""

from dataclasses import replace

import pytest
from tests.tiers import tiered

from dovetail.account.accountant import Accountant
from dovetail.account.amplify import amplify
from dovetail.account.calibrate import MARGIN, max_epsilon, min_people
from dovetail.account.clones import ClonePair
from dovetail.account.compose import compose
from dovetail.account.rounds import ShuffledRound
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.stages import Randomizer
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR

QUESTIONS = [(e0, share * e0, d) for e0 in (1e-3, 0.5, 2.0, 8.0) for share in (0.01, 0.3, 0.9) for d in (1e-12, 1e-5)]


def keeps(pair: ClonePair, epsilon: float, delta: float) -> bool:
    return pair.upper(epsilon * (1 - MARGIN), pair.blocks_for(delta)) <= delta


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("epsilon0", "epsilon", "delta"), QUESTIONS)
def test_the_answer_is_enough_and_one_person_less_is_not(
    epsilon0: float, epsilon: float, delta: float, adaptive: bool
) -> None:
    n = min_people(epsilon0=epsilon0, epsilon=epsilon, delta=delta, adaptive=adaptive)
    if adaptive:
        assert ClonePair(epsilon0, n, "clones").epsilon(delta).upper <= epsilon
        assert n == 1 or not keeps(ClonePair(epsilon0, n - 1, "clones"), epsilon, delta)
        few = max(1, int(n * (1 - 1e-3)) - 1)  # no proof of this pair could do with them
        assert n == 1 or ClonePair(epsilon0, few, "clones").epsilon(delta).lower > epsilon
        return
    assert amplify(epsilon0, n=n, delta=delta).epsilon <= epsilon
    assert n == 1 or amplify(epsilon0, n=n - 1, delta=delta).epsilon > epsilon * (1 - 2.0 / n - 1e-6)
    few = max(1, int(n * (1 - 2e-2)) - 1)  # a real randomizer exceeds it with them
    assert n == 1 or amplify(epsilon0, n=few, delta=delta).attack_lower > epsilon


def test_small_answers_are_exact() -> None:
    for epsilon0, n in ((1.0, 7), (2.0, 100), (0.5, 3_000)):
        epsilon = amplify(epsilon0, n=n, delta=1e-6).epsilon * (1 + 4e-6)
        assert min_people(epsilon0=epsilon0, epsilon=epsilon, delta=1e-6) in (n - 1, n)


def test_the_two_inverse_questions_agree() -> None:
    for epsilon0, epsilon in ((1.0, 0.1), (4.0, 0.5)):
        n = min_people(epsilon0=epsilon0, epsilon=epsilon, delta=1e-8)
        assert max_epsilon(epsilon=epsilon, n=n, delta=1e-8) >= epsilon0 * (1 - 1e-6)
        assert max_epsilon(epsilon=epsilon, n=int(0.99 * n), delta=1e-8) < epsilon0


def test_nobody_else_is_needed_where_the_local_promise_suffices() -> None:
    assert min_people(epsilon0=1.0, epsilon=1.0, delta=0.0) == 1
    assert min_people(epsilon0=1.0, epsilon=0.9, delta=0.5) == 1


def test_what_no_number_of_people_reaches_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match="1e\\+12 people"):
        min_people(epsilon0=20.0, epsilon=1e-3, delta=1e-9)
    with pytest.raises(UnsupportedError, match="At delta 0"):
        min_people(epsilon0=1.0, epsilon=0.5, delta=0.0)


def test_whatever_lies_outside_the_range_is_refused_by_name() -> None:
    for name, wrong in (("epsilon0", 0.0), ("epsilon", True), ("epsilon", -1.0), ("delta", 1.0), ("delta", "0.1")):
        question = {"epsilon0": 1.0, "epsilon": 0.5, "delta": 1e-6, name: wrong}
        with pytest.raises(ParameterError, match=f"`{name}` must be"):
            min_people(**question)  # type: ignore[arg-type]


MECHANISMS = [(None, 1), (KRR(k=1024, epsilon=1.0), 1), (None, 8), (KRR(k=50, epsilon=1.0), 4), (Hadamard(2, 1.0), 2)]


@pytest.mark.parametrize(("randomizer", "rounds"), tiered(MECHANISMS, lambda case: case == (None, 1)), ids=str)
def test_both_inverses_of_rounds_of_a_mechanism_are_admissible_and_near_the_edge(
    randomizer: Randomizer | None, rounds: int
) -> None:
    def reached(epsilon0: float, n: int) -> float:
        subject = epsilon0 if randomizer is None else replace(randomizer, epsilon=epsilon0)  # type: ignore[type-var]
        if rounds == 1:
            return amplify(subject, n=n, delta=1e-6).epsilon
        part = ShuffledRound(epsilon0, n, times=rounds)
        found = compose([part if randomizer is None else ShuffledRound.of(subject, n, times=rounds)], delta=1e-6)
        assert found.epsilon is not None
        return found.epsilon

    most = max_epsilon(epsilon=0.3, n=20_000, delta=1e-6, randomizer=randomizer, rounds=rounds)
    assert reached(most, 20_000) <= 0.3 < reached(most * 1.01, 20_000)
    fewest = min_people(epsilon0=2.0, epsilon=0.3, delta=1e-6, randomizer=randomizer, rounds=rounds)
    assert reached(2.0, fewest) <= 0.3 < reached(2.0, int(fewest * 0.98))


@pytest.mark.exhaust
def test_rounds_that_cannot_be_kept_are_refused_and_without_delta_epsilons_add() -> None:
    assert max_epsilon(epsilon=1.0, n=100, delta=0.0, rounds=4) == 0.25
    assert min_people(epsilon0=0.1, epsilon=1.0, delta=1e-6, rounds=10) == 1
    with pytest.raises(UnsupportedError, match="from 1000 rounds"):
        min_people(epsilon0=30.0, epsilon=1e-3, delta=1e-6, rounds=1000)


@pytest.mark.exhaust
def test_the_largest_epsilon0_of_rounds_is_admissible() -> None:
    most = max_epsilon(epsilon=0.5, n=1000, delta=1e-6, rounds=3)
    assert most > 0.5 / 3
    found = compose([ShuffledRound(most, 1000, times=3)], delta=1e-6).epsilon
    assert found is not None and found <= 0.5


def test_rounds_are_asked_about_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first guess is that of normal losses, and so is within a few percent."""
    asked = []
    ask = Accountant.log_ratio

    def counted(self: Accountant, epsilon: float, **given: float) -> float:
        asked.append(epsilon)
        return ask(self, epsilon, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(Accountant, "log_ratio", counted)
    max_epsilon(epsilon=0.3, n=10**6, delta=1e-9, rounds=50)
    assert len(asked) <= 6
    min_people(epsilon0=1.0, epsilon=0.3, delta=1e-9, rounds=50)
    assert len(asked) <= 12
