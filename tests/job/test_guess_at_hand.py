"""The guess for the shares at hand is the best of all, counted in fractions, and is never quoted below that."""

from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.job.surveys import rehearsal, release, survey

import dovetail as dt
from dovetail.core.channel import Channel, DenseChannel, KRRChannel
from dovetail.core.missing import Missing
from dovetail.job.evaluate import guess_at_hand
from dovetail.report.document import GuessAtHand

SKEWED = {2: (0.625, 0.375), 3: (0.5, 0.3125, 0.1875)}  # sums of powers of two, so that fractions are the shares
DENSE = {
    2: DenseChannel([[0.75, 0.125, 0.125], [0.25, 0.5, 0.25]]),
    3: DenseChannel([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.25, 0.125, 0.625]]),
}
UNSHUFFLED = Missing("nothing is shuffled")


def exact(channel: Channel) -> list[list[Fraction]]:
    """The channel's cells without rounding."""
    if isinstance(channel, KRRChannel):
        keep, lie = (Fraction(mass, channel.total) for mass in (channel.keep, channel.lie))
        return [[keep if x == y else lie for y in range(channel.k)] for x in range(channel.k)]
    return [[Fraction(cell) for cell in row] for row in channel.matrix().tolist()]


def enumerated(channel: Channel, shares: tuple[float, ...], n: int) -> Fraction:
    """Chance that the best guess of the first person is right, over every batch of n reports without their order."""
    cells, prior = exact(channel), [Fraction(share) for share in shares]
    law = [sum(pi * row[y] for pi, row in zip(prior, cells, strict=True)) for y in range(len(cells[0]))]
    seen: dict[tuple[int, ...], list[Fraction]] = {}
    for batch in product(range(len(law)), repeat=n):
        rest = prod((law[y] for y in batch[1:]), start=Fraction(1))
        chances = seen.setdefault(tuple(sorted(batch)), [Fraction(0)] * len(prior))
        for x, pi in enumerate(prior):
            chances[x] += pi * cells[x][batch[0]] * rest
    return sum((max(chances) for chances in seen.values()), Fraction(0))


def guess(channel: Channel | None, shares: tuple[float, ...], **options: Any) -> GuessAtHand:
    """The guess, from reports of k-ary randomized response where there is no channel."""
    settings = {"law": "empirical", "exact": True, "randomizer": dt.KRR(k=len(shares), epsilon=1.0)} | options
    return guess_at_hand(channel=channel, shares=np.array(shares), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_guess_is_that_of_all_batches_and_never_quoted_below_it(n: int, dense: bool, k: int) -> None:
    for channel in [DENSE[k]] if dense else [dt.KRR(k=k, epsilon=epsilon).channel() for epsilon in (0.1, 0.5, 1.5)]:
        found = guess(channel, SKEWED[k], m=n)
        own, together = enumerated(channel, SKEWED[k], 1), enumerated(channel, SKEWED[k], n)
        assert (found.prior, found.prior_law) == (max(SKEWED[k]), "empirical") and found.method != "bracket"
        assert found.randomized == pytest.approx(float(own), abs=1e-11) and Fraction(found.randomized) >= own
        assert not isinstance(found.randomized_shuffled, Missing)
        assert found.randomized_shuffled == pytest.approx(float(together), abs=1e-11)
        assert Fraction(found.randomized_shuffled) >= together
        assert found.randomized_shuffled <= found.randomized


def test_fewer_people_than_there_are_give_an_upper_bound_that_says_so() -> None:
    found = guess(DENSE[3], SKEWED[3], m=2, exact=False)
    assert found.method == "bracket" and not isinstance(found.randomized_shuffled, Missing)
    assert Fraction(found.randomized_shuffled) >= enumerated(DENSE[3], SKEWED[3], 4)
    assert found.randomized_shuffled == guess(DENSE[3], SKEWED[3], m=2).randomized_shuffled


@pytest.mark.exhaust
def test_a_batch_that_cannot_be_summed_over_tells_no_more_than_ones_own_report() -> None:
    shares = (0.4, 0.2, 0.2, 0.1, 0.1)
    channel = dt.KRR(k=5, epsilon=1.0).channel()
    found = guess(channel, shares, m=10**6)
    assert found.method == "bracket" and found.prior <= found.randomized_shuffled <= found.randomized


def test_a_bracket_that_is_wider_than_ones_own_report_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = dt.vulnerability(dt.KRR(k=2, epsilon=9.0), n=1)
    monkeypatch.setattr("dovetail.job.evaluate.vulnerability", lambda *_, **__: wide)
    found = guess(dt.KRR(k=2, epsilon=1.0).channel(), (0.5, 0.5), m=10)
    assert found.randomized_shuffled == found.randomized < 0.74


@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.9375, 0.0625)])
def test_no_guess_is_worse_than_the_blind_one(shares: tuple[float, ...]) -> None:
    for channel in (None, dt.KRR(k=2, epsilon=1e-3).channel()):
        found = guess(channel, shares, m=4)
        assert not isinstance(found.randomized_shuffled, Missing)
        assert found.prior == max(shares) <= min(found.randomized, found.randomized_shuffled) <= 1.0


def test_without_a_uniform_shuffle_one_report_is_all_there_is() -> None:
    found = guess(DENSE[2], SKEWED[2], m=UNSHUFFLED)
    assert (found.randomized_shuffled, found.method) == (UNSHUFFLED, "one report")
    assert Fraction(found.randomized) >= enumerated(DENSE[2], SKEWED[2], 1)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.625, 0.375), (0.5, 0.3125, 0.1875), (0.3, 0.3, 0.2, 0.2)])
def test_reports_that_are_not_listed_are_bounded_by_what_any_randomizer_of_this_epsilon_gives(
    shares: tuple[float, ...],
) -> None:
    for randomizer in (dt.KRR(k=len(shares), epsilon=1.2), dt.Unary(k=len(shares), epsilon=1.2)):
        found = guess(None, shares, m=7, randomizer=randomizer)
        assert found.randomized_shuffled == found.randomized and found.method == "bracket"
        assert found.randomized >= guess(randomizer.channel(), shares, m=UNSHUFFLED).randomized * (1.0 - 1e-11)
    if shares == (0.5, 0.5):  # where response keeps the bound
        assert found.randomized == pytest.approx(dt.KRR(k=2, epsilon=1.2).channel().p, abs=1e-11)


def test_a_release_guesses_with_the_shares_it_estimates_and_a_rehearsal_with_true_ones(
    tmp_path: Path,
) -> None:
    made, rehearsed = (
        dt.run(config, table=survey(), ledger=tmp_path).evaluation for config in (release(), rehearsal())
    )
    for found, law in ((made, "estimated"), (rehearsed, "empirical")):
        assert not isinstance(found.leakage, Missing) and not isinstance(found.leakage.at_hand, Missing)
        overall = found.estimates.overall
        wanted = overall.possible if law == "estimated" else overall.truth
        assert wanted is not None
        assert (found.leakage.at_hand.prior_law, found.leakage.at_hand.prior) == (law, max(wanted))


def test_a_release_guesses_with_shares_also_where_its_estimates_are_none(tmp_path: Path) -> None:
    few = survey(10)  # with twenty answers, so that some are in no report and are estimated below 0
    config = release(data={"categories": ["no", "yes", *(f"never {place}" for place in range(18))]})
    found = dt.run(config, table=few, ledger=tmp_path).evaluation
    assert not isinstance(found.leakage, Missing) and not isinstance(found.leakage.at_hand, Missing)
    overall = found.estimates.overall
    assert min(overall.value) < 0.0 <= min(overall.possible)
    assert found.leakage.at_hand.prior == max(overall.possible)
