"""The verdict: monotone in everything that is told of a promise, and never green where an answer lies open."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from dovetail.account.amplify import amplify
from dovetail.account.dummies import dummies_guarantee
from dovetail.core.errors import ParameterError
from dovetail.core.verdict import (
    LIMITS,
    WORDS,
    Promise,
    Verdict,
    guess_bound,
    judge,
    judge_central,
    percent_up,
    scale_sentences,
    warnings_of,
    word_of,
)
from dovetail.shuffle.sampling.dummies import Dummies

LOCAL = (0.0, 0.5, 1.0, 1.0001, 2.0, 3.0, 4.5, 5.0, 9.0, 20.0, 600.0, math.inf)
CENTRAL = (0.0, 0.1, 0.9, 1.0, 2.5, 3.0, 4.9, 9.0, 600.0, math.inf)
DELTA = (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.5, 1.0)
DELTA0 = (0.0, 1e-5, 0.2)


def rank(found: Verdict) -> int:
    return WORDS.index(found.word)


@pytest.mark.exhaust
def test_the_verdict_is_monotone_over_a_grid_of_collections() -> None:
    grid = {
        (local, delta0, central, delta): judge(
            Promise(local, delta0), people=Promise(central, delta), n=10_000, honest=9_000
        )
        for local, delta0, central, delta in product(LOCAL, DELTA0, CENTRAL, DELTA)
    }
    assert len(grid) > 2000
    axes = (LOCAL, DELTA0, CENTRAL, DELTA)
    for place, found in grid.items():
        for axis, values in enumerate(axes):
            following = values.index(place[axis]) + 1
            if following < len(values):
                worse = grid[(*place[:axis], values[following], *place[axis + 1 :])]
                assert rank(worse) >= rank(found), (place, axis)
                pairs = zip(found.rows, worse.rows, strict=True)
                assert all(
                    one.word == two.word or WORDS.index(two.word) > WORDS.index(one.word) for one, two in pairs
                )


def test_no_row_is_green_where_a_guess_is_right_more_often_than_the_scale_says() -> None:
    most = guess_bound(*LIMITS["strong"])
    assert most < 0.74
    for local, central, delta in product(LOCAL, CENTRAL, DELTA):
        found = judge(Promise(local), people=Promise(central, delta), n=100)
        for row in found.rows:
            assert row.word != "strong" or row.guess <= most
            assert row.word != "strong" or word_of(local) != "none"  # a colluding shuffler reads the answers
        assert found.decides.word == found.word == found.rows[-1].word
        ranks = [WORDS.index(row.word) for row in found.rows]
        assert ranks == sorted(ranks, reverse=True)  # with more trust never less
        assert (found.word == "strong") <= (
            f"if {found.decides.who}" in found.sentence() or "even if all others cheat" in found.sentence()
        )


@pytest.mark.exhaust
def test_more_people_and_more_honest_ones_never_make_it_worse() -> None:
    for epsilon0 in (0.5, 2.0, 4.0, 9.0):
        ranks = [rank(judge_central(amplify(epsilon0, n=n, delta=1e-6))) for n in (1, 10, 100, 10_000, 1_000_000)]
        assert ranks == sorted(ranks, reverse=True), epsilon0
        some = [rank(judge_central(amplify(epsilon0, n=10_000, honest=h, delta=1e-6))) for h in (1, 10, 500, 10_000)]
        assert some == sorted(some, reverse=True), epsilon0


@pytest.mark.parametrize("n", [1, 4200])
def test_open_answers_are_protected_by_trust_alone_and_it_says_so(n: int) -> None:
    for epsilon in (9.0, 20.0, 34.7, 600.0):
        found = judge(Promise(epsilon), people=Promise(epsilon, 1e-6), n=n)
        assert found.word == "none" and "protects nobody but by trust in the shuffler" in found.sentence()
    assert judge(Promise(math.inf), n=n, shuffled=False).sentence() == "none: it protects nobody"


def test_what_a_trusted_shuffler_adds_is_never_green() -> None:
    promise = dummies_guarantee(Dummies(k=4, epsilon=0.1, delta=1e-9), n=10_000)
    found = judge_central(promise)
    assert (found.word, found.decides.trusted) == ("moderate", "shuffler")
    assert "if the shuffler is honest" in found.sentence() and "protects nobody but by trust" in found.sentence()


def test_a_green_word_names_whom_it_trusts() -> None:
    found = judge_central(amplify(2.0, n=10_000, honest=9_000, delta=1e-6))
    assert (
        found.sentence()
        == "strong, if the shuffler and 9,000 of 10,000 people are honest; moderate without that trust"
    )
    assert [row.word for row in found.rows] == ["moderate", "moderate", "strong"]
    assert judge(Promise(0.5), people=Promise(0.1, 1e-6), n=100).sentence() == "strong, even if all others cheat"


def test_a_verdict_that_counts_on_everybody_says_only() -> None:
    counted = [judge(Promise(2.0), people=Promise(0.1, 1e-6), n=100, honest=h).sentence() for h in (None, 100, 99)]
    assert [found.partition(" honest")[0] for found in counted] == [
        "strong, but only if the shuffler and all 100 people are",
        "strong, but only if the shuffler and all 100 people are",
        "strong, if the shuffler and 99 of 100 people are",
    ]


def test_a_large_delta_costs_the_word_and_is_warned_of() -> None:
    assert [word_of(0.1, delta) for delta in (1e-4, 1e-3, 1e-2, 0.5)] == ["strong", "moderate", "weak", "none"]
    assert list(warnings_of(1e-6, 999_999)) == []
    for delta, n in ((1e-6, 1_000_000), (0.5, 1), (0.5, 10)):
        assert next(warnings_of(delta, n)).startswith(f"delta = {delta:g} is not below"), (delta, n)
    assert "only one of 100 people is assumed honest: no other report hides hers" in " ".join(
        warnings_of(1e-9, 100, honest=1)
    )
    assert "one person alone" in " ".join(warnings_of(1e-9, 1))


def test_what_a_single_report_may_fail_by_counts() -> None:
    central = amplify(0.5, n=10_000, delta=1e-6)
    assert judge_central(central).rows[0].delta == 0.0
    found = judge_central(central, local_delta=0.2)
    assert (found.rows[0].delta, found.rows[0].word, found.word) == (0.2, "none", "moderate")


def test_no_rule_is_right_more_often_than_the_bound() -> None:
    """The bound against the best rule for channels drawn at random, with their own exact delta."""
    draws = np.random.default_rng(34)
    for k, outputs in ((2, 3), (3, 4), (5, 6)):
        for _ in range(60):
            channel = draws.dirichlet(np.full(outputs, 0.4), size=k)
            prior = draws.dirichlet(np.full(k, 1.0))
            epsilon = float(draws.uniform(0.0, 3.0))
            delta = max(
                float(np.maximum(channel[a] - math.exp(epsilon) * channel[b], 0.0).sum())
                for a in range(k) for b in range(k)
            )  # fmt: skip
            best = float((prior[:, None] * channel).max(axis=0).sum())
            assert best <= guess_bound(epsilon, min(1.0, delta), blind=float(prior.max())) + 1e-12


def test_the_scale_states_the_limits_that_the_words_have() -> None:
    text = " ".join(scale_sentences())
    for word, (epsilon, delta) in LIMITS.items():
        assert word_of(epsilon, delta) == word != word_of(epsilon * 1.0001, delta)
        assert f"{word} up to ε = {epsilon:g}" in text and percent_up(guess_bound(epsilon, delta)) in text
    docstring = word_of.__doc__ or ""
    assert all(f"{source}" in text for source in ("Ponomareva", "Dwork and Roth", "convention and no theorem"))
    assert all(source in docstring for source in ("Ponomareva", "Dwork and Roth", "Lee and Clifton"))


def test_chances_are_rounded_up_and_one_is_kept_for_certainty() -> None:
    assert percent_up(0.73105001) == "73.11%" and percent_up(0.999999) == "nearly 100%" and percent_up(1.0) == "100%"
    with pytest.raises(ParameterError):
        word_of(-1.0)
    with pytest.raises(ParameterError):
        guess_bound(1.0, 2.0)
    with pytest.raises(ParameterError):
        guess_bound(1.0, blind=1.5)
    with pytest.raises(ParameterError):
        word_of(math.nan)


def test_a_row_says_blind_and_from_this() -> None:
    row = judge(Promise(2.0), people=Promise(1.0, 1e-6), n=10).rows[0]
    assert (
        row.sentence()
        == "a guess between two answers of one person is right: blind 50%, from this at most 88.08%; odds × 7.39"
    )
    assert replace(row, epsilon=math.inf).odds == math.inf
