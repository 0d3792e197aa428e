"""Guarantees imply and compose exactly what holds."""

import math
from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP, LocalDP, OrderPrivacy

CENTRAL = dt.amplify(2.0, n=100_000, delta=1e-6)
FEWER = dt.amplify(2.0, n=100_000, delta=1e-6, honest=1000)


def test_local_budgets_add_and_weaker_promises_follow() -> None:
    both = LocalDP(1.0, source="a").compose(LocalDP(0.5, 0.1, source="b"))
    assert (both.epsilon, both.delta) == (1.5, 0.1)
    assert LocalDP(1.0).implies(LocalDP(1.5)) and not LocalDP(1.0).implies(LocalDP(0.5))
    assert not LocalDP(1.0, 0.1).implies(LocalDP(1.5))


def test_two_reports_about_one_value_fail_as_often_as_both_together() -> None:
    both = LocalDP(1.0, 0.25).compose(LocalDP(0.5, 0.125))
    assert (both.epsilon, both.delta) == (1.5, 0.375)
    assert LocalDP(1.0, 0.75).compose(LocalDP(1.0, 0.5)).delta == 1.0, "no probability is above 1"


def test_two_central_releases_lose_on_every_line_what_both_lose() -> None:
    first = replace(CENTRAL, all=0.25, honest=0.5, colluding=2.0, delta=0.25)
    second = replace(CENTRAL, all=0.125, honest=0.25, colluding=3.0, delta=0.125)
    both = first.compose(second)
    assert (both.all, both.honest, both.colluding, both.delta) == (0.375, 0.75, 5.0, 0.375)
    assert both.numeric.upper == both.honest and both.numeric.lower <= both.honest


def test_a_promise_that_fails_more_often_implies_none_that_fails_less() -> None:
    assert FEWER.implies(replace(FEWER, delta=1e-5)) and not replace(FEWER, delta=1e-5).implies(FEWER)


def test_two_releases_of_one_order_lose_what_both_lose_and_only_for_the_same_groups() -> None:
    pairs = dt.Groups.from_lists([[0, 1], [2, 3]], 4)
    both = OrderPrivacy(1.0, pairs).compose(OrderPrivacy(0.5, dt.Groups.from_lists([[0, 1], [2, 3]], 4)))
    assert both.alpha == 1.5 and both.groups == pairs
    for other in (None, dt.Groups.from_lists([[0, 2], [1, 3]], 4)):
        with pytest.raises(UnsupportedError, match="same groups"):
            OrderPrivacy(1.0, pairs).compose(OrderPrivacy(0.5, other))


@pytest.mark.exhaust
def test_an_order_promise_implies_those_for_parts_of_its_groups_with_no_smaller_alpha() -> None:
    whole, parts = dt.Groups.from_lists([[0, 1, 2, 3]], 4), dt.Groups.from_lists([[0, 1], [2, 3]], 4)
    assert OrderPrivacy(1.0, whole).implies(OrderPrivacy(1.0, parts))
    assert not OrderPrivacy(1.0, parts).implies(OrderPrivacy(1.0, whole))
    assert OrderPrivacy(1.0).implies(OrderPrivacy(1.0, parts)) and not OrderPrivacy(1.0, parts).implies(
        OrderPrivacy(1.0)
    ), "None stands for one group of everybody"
    assert not OrderPrivacy(1.0, whole).implies(OrderPrivacy(0.5, parts))
    assert OrderPrivacy(9.0, parts).implies(OrderPrivacy(float("inf"))), "no promise follows from any"


def test_an_order_that_a_seed_reproduces_protects_nobody() -> None:
    assert OrderPrivacy(0.0).protects and not OrderPrivacy(float("inf")).protects
    assert not OrderPrivacy(0.0).drawn_from("simulation").protects


def test_the_line_for_the_honest_names_their_number_and_their_own_epsilon() -> None:
    promise = replace(FEWER, all=0.25, honest=0.5)
    assert "1,000 of them assumed honest: (0.5, " in promise.lines()[1] and "(0.25, " in promise.lines()[0]
    assert "all of them assumed honest" in CENTRAL.lines()[1]


def test_a_composition_needs_the_honest_people_of_both() -> None:
    both = CENTRAL.compose(FEWER)
    assert both.honest_n == 100_000 and both.honest == pytest.approx(CENTRAL.honest + FEWER.honest, rel=1e-15)
    assert both.delta == 2e-6 and both.attack_lower == 0.0
    # with 1,000 honest people only, twice the weaker promise is all that basic composition gives
    assert FEWER.compose(FEWER).honest == 2 * FEWER.honest > both.honest


def test_a_central_promise_implies_another_line_by_line() -> None:
    assert FEWER.implies(replace(FEWER, honest=FEWER.honest + 1.0))
    assert not CENTRAL.implies(FEWER), "100,000 honest people are more to ask than 1,000"
    assert FEWER.implies(replace(FEWER, honest_n=5000))
    stronger_line = dt.amplify(0.5, n=10**7, delta=1e-6, honest=1)
    assert not dt.amplify(8.0, n=10**7, delta=1e-6).implies(stronger_line)
    assert not FEWER.implies(replace(FEWER, neighbours="add or remove a person"))
    assert not FEWER.implies(replace(FEWER, n=99_999))
    assert LocalDP(0.0).implies(CENTRAL) and not LocalDP(0.4).implies(stronger_line)


def test_caveats_take_every_implication_away() -> None:
    for promise in (LocalDP(1.0), CENTRAL, OrderPrivacy(1.0)):
        simulated = promise.drawn_from("simulation")
        assert promise.implies(promise) and not simulated.implies(promise) and simulated.caveats
        assert promise.drawn_from("device") == promise


def test_promises_with_any_number_of_participants_compose_whoever_else_took_part() -> None:
    alone = replace(CENTRAL, honest_n=1, trust="shuffler")
    both = alone.compose(replace(alone, n=alone.n + 5))
    assert both.honest >= 2 * alone.honest and (both.n, both.honest_n) == (alone.n + 5, 1)
    with pytest.raises(UnsupportedError, match="not about the same people"):
        alone.compose(replace(alone, n=alone.n + 5, honest_n=2))


def test_releases_of_different_people_do_not_compose() -> None:
    with pytest.raises(UnsupportedError, match="not about the same people"):
        CENTRAL.compose(dt.amplify(2.0, n=10, delta=1e-6))


def test_printed_promises_are_rounded_up() -> None:
    promise = replace(CENTRAL, all=0.123401, honest=0.123401, colluding=2.00001)
    assert [line.split("(")[-1][:6] for line in promise.lines()[:2]] == ["0.124,", "0.124,"]
    assert promise.lines()[2].endswith("2.01") and str(promise).count("\n") == 2


@pytest.mark.parametrize("wrong", [lambda: LocalDP(-1.0), lambda: LocalDP(1.0, 2.0), lambda: OrderPrivacy(-1.0),
                                   lambda: LocalDP(1.0, -0.1), lambda: OrderPrivacy(float("nan")),
                                   lambda: replace(CENTRAL, all=float("nan"))])  # fmt: skip
def test_promises_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(ParameterError):
        wrong()  # type: ignore[operator]


def test_a_central_promise_has_the_three_lines_of_its_definition() -> None:
    assert isinstance(CENTRAL, CentralDP) and CENTRAL.epsilon == CENTRAL.honest
    assert CENTRAL.all <= CENTRAL.honest <= CENTRAL.colluding == 2.0


def test_what_two_releases_lose_together_is_never_below_the_sum_of_what_is_written() -> None:
    """The nearest double of .7 + .1 is written .7999999999999999."""
    for a, b, both in ((0.7, 0.1, 0.8), (0.8, 0.1, 0.9), (0.1, 0.4, 0.5)):
        local = LocalDP(a, b / 2).compose(LocalDP(b, a / 2))
        assert local.epsilon == both and local.delta >= both / 2
        assert OrderPrivacy(a).compose(OrderPrivacy(b)).alpha == both
        first, second = (replace(CENTRAL, all=x, honest=x, colluding=x) for x in (a, b))
        assert {first.compose(second).all, first.compose(second).honest, first.compose(second).colluding} == {both}
    assert LocalDP(math.inf).compose(LocalDP(0.1)).epsilon == math.inf
