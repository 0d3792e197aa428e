"""Guarantees imply and compose exactly what holds."""

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


def test_a_composition_needs_the_honest_people_of_both() -> None:
    both = CENTRAL.compose(FEWER)
    assert both.honest_n == 100_000 and both.honest == CENTRAL.honest + FEWER.honest
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


def test_releases_of_different_people_do_not_compose() -> None:
    with pytest.raises(UnsupportedError, match="not about the same people"):
        CENTRAL.compose(dt.amplify(2.0, n=10, delta=1e-6))


def test_printed_promises_are_rounded_up() -> None:
    promise = replace(CENTRAL, all=0.123401, honest=0.123401, colluding=2.00001)
    assert [line.split("(")[-1][:6] for line in promise.lines()[:2]] == ["0.1235", "0.1235"]
    assert promise.lines()[2].endswith("2.001") and str(promise).count("\n") == 2


@pytest.mark.parametrize("wrong", [lambda: LocalDP(-1.0), lambda: LocalDP(1.0, 2.0), lambda: OrderPrivacy(-1.0),
                                   lambda: replace(CENTRAL, all=float("nan"))])  # fmt: skip
def test_promises_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(ParameterError):
        wrong()  # type: ignore[operator]


def test_a_central_promise_has_the_three_lines_of_its_definition() -> None:
    assert isinstance(CENTRAL, CentralDP) and CENTRAL.epsilon == CENTRAL.honest
    assert CENTRAL.all <= CENTRAL.honest <= CENTRAL.colluding == 2.0
