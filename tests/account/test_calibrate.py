"""How many people are enough; the other inverse question is tested with `amplify`."""

import pytest

from dovetail.account.calibrate import MARGIN, max_epsilon, min_people
from dovetail.account.clones.stronger_clones import ClonePair, Kind
from dovetail.core.errors import ParameterError, UnsupportedError

QUESTIONS = [(e0, share * e0, d) for e0 in (1e-3, 0.5, 2.0, 8.0) for share in (0.01, 0.3, 0.9) for d in (1e-12, 1e-5)]


def keeps(pair: ClonePair, epsilon: float, delta: float) -> bool:
    return pair.upper(epsilon * (1 - MARGIN), pair.blocks_for(delta)) <= delta


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("epsilon0", "epsilon", "delta"), QUESTIONS)
def test_the_answer_is_enough_and_one_person_less_is_not(
    epsilon0: float, epsilon: float, delta: float, adaptive: bool
) -> None:
    kind: Kind = "clones" if adaptive else "stronger clones"
    n = min_people(epsilon0=epsilon0, epsilon=epsilon, delta=delta, adaptive=adaptive)
    assert ClonePair(epsilon0, n, kind).epsilon(delta).upper <= epsilon
    if n > 1:
        assert not keeps(ClonePair(epsilon0, n - 1, kind), epsilon, delta)
        few = max(1, int(n * (1 - 1e-3)) - 1)
        assert (
            ClonePair(epsilon0, few, kind).epsilon(delta).lower > epsilon
        )  # no proof of this pair could do with them


def test_small_answers_are_exact() -> None:
    for epsilon0, n in ((1.0, 7), (2.0, 100), (0.5, 3_000)):
        epsilon = ClonePair(epsilon0, n).epsilon(1e-6).upper * (1 + 1e-6)
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
