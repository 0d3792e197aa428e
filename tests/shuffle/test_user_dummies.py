"""Dummies that people send: their law, the cap of the shuffler, the promise with dropouts, and what is refused."""

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits, SimulatedBits
from tests.randomize.chosen import Chosen
from tests.statistics import expect_broken, expect_law, expect_mean

from dovetail.account.amplify import amplify
from dovetail.account.dummies import (
    UserDummiesLaw,
    dummies_guarantee,
    least_dummies,
    user_dummies_for,
    user_dummies_guarantee,
)
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.estimate.dummies import estimate_with_user_dummies
from dovetail.estimate.frequency import project_shares
from dovetail.plan.dummies import plan_with_user_dummies
from dovetail.randomize.krr import KRR
from dovetail.shuffle.sampling.dummies import Dummies, UserDummies
from dovetail_protocol.dummies import SCALE, SentDummies

# docs/theory/accuracy.md, C3, n = 1e5, epsilon = 1, delta = 1e-6: k, messages of a person, standard deviation
TABLE = [(16, 1.007, 6.53), (100, 1.0427, 6.53), (1000, 1.43, 6.53)]


@pytest.mark.parametrize(("k", "messages", "deviation"), TABLE)
def test_rates_and_errors_are_those_of_the_theory(k: int, messages: float, deviation: float) -> None:
    dummies = user_dummies_for(k=k, epsilon=1.0, delta=1e-6, honest=100_000)
    assert 1.0 + dummies.rate == pytest.approx(messages, abs=5e-3 if k == 1000 else 2e-4)
    assert sqrt(dummies.variance(100_000)) == pytest.approx(deviation, rel=3e-3)
    law = UserDummiesLaw(k, 100_000, dummies.rate)
    assert law.delta(1.0) <= 1e-6 < UserDummiesLaw(k, 100_000, 0.99 * dummies.rate).ends(1.0).lower


@pytest.mark.parametrize(("k", "symbols", "epsilon"), [(40, 2, 20.0), (12, 3, 20.0), (40, 2, 12.0), (8, 4, 7.0)])
def test_as_few_people_as_can_be_keep_what_they_are_asked_to(k: int, symbols: int, epsilon: float) -> None:
    """Of several symbols the bound rises again with epsilon: what a smaller one keeps, a larger one does."""
    with pytest.raises(ParameterError, match="must be at least") as refused:
        user_dummies_for(k=k, epsilon=epsilon, delta=1e-6, honest=20, symbols=symbols)
    floor = int(str(refused.value).split("at least ")[1].split()[0].replace(",", ""))
    for honest in (floor, floor + 5, floor + 22):
        rate = user_dummies_for(k=k, epsilon=epsilon, delta=1e-6, honest=honest, symbols=symbols).rate
        law = UserDummiesLaw(k, honest, rate, symbols)
        assert law.epsilon(1e-6) <= epsilon
        deltas = [law.delta(one) for one in np.linspace(0.3 * epsilon, epsilon, 40)]
        assert (np.diff(deltas) <= 0.0).all()


def test_delta_falls_with_honest_people_and_with_what_they_send() -> None:
    def delta(honest: int, rate: float) -> float:
        return UserDummiesLaw(16, honest, rate).delta(1.0)

    assert delta(1100, 0.5) < delta(1000, 0.5) < delta(900, 0.5) and delta(1000, 0.55) < delta(1000, 0.5)
    law = UserDummiesLaw(16, 1000, 0.5)
    assert law.ends(1.0).lower <= law.delta(1.0) <= 1.05 * law.ends(1.0).lower
    found = law.epsilon(1e-5)
    assert 0.95 * found <= law.epsilon_lower(1e-5, found=found) < found


@pytest.mark.exhaust
def test_dropouts_stand_in_the_promise() -> None:
    dummies = user_dummies_for(k=16, epsilon=1.0, delta=1e-6, honest=9_000)
    some, every, fewer = (
        user_dummies_guarantee(dummies, n=10_000, delta=1e-6, honest=honest) for honest in (9_000, 10_000, 7_000)
    )
    assert 0.999 < some.epsilon <= 1.0 and every.epsilon == some.all < 0.96
    assert fewer.epsilon > 1.1  # what is promised where more of them drop out
    assert (some.trust, some.honest_n, some.colluding) == ("users", 9_000, inf)
    words = " ".join(some.lines())
    assert "if 9,000 of 10,000 people are honest and their answers and dummies arrive" in words
    assert "at most one message of a person beside her answers" in words and "there is no local promise" in words


@pytest.mark.exhaust
def test_trust_in_people_is_never_mixed_with_another() -> None:
    mine = user_dummies_guarantee(UserDummies(4, 0.5), n=200, delta=1e-3)
    shuffler = dummies_guarantee(Dummies(4, 1.0, 1e-3), n=200)
    for other in (shuffler, amplify(KRR(4, 1.0), n=200, delta=1e-3)):
        assert not mine.implies(other) and not other.implies(mine)
        with pytest.raises(UnsupportedError, match="state each by itself"):
            mine.compose(other)
    assert mine.compose(mine).trust == "users"


def test_so_many_honest_people_are_needed_and_no_fewer() -> None:
    floor = least_dummies(100, 1.0, 1e-6)
    enough, short = (UserDummiesLaw(100, honest, 1.0).delta(1.0) for honest in (floor, floor - 1))
    assert enough <= 1e-6 < short
    assert user_dummies_for(k=100, epsilon=1.0, delta=1e-6, honest=floor).rate > 0.99
    with pytest.raises(
        ParameterError, match=f"`honest` must be at least {floor:,} for 100 values .* got {floor - 1}"
    ):
        user_dummies_for(k=100, epsilon=1.0, delta=1e-6, honest=floor - 1)


def test_devices_and_arrays_send_by_one_law(rng: Entropy) -> None:
    sent, dummies, words = SentDummies(3, 0.4), UserDummies(3, 0.4), SimulatedBits(rng)
    law = np.array([0.6, *[0.4 / 3] * 3])  # no dummy, or one of three
    one_by_one = np.zeros(4)
    for _ in range(20_000):
        first, *rest = sent.messages(1, words)
        assert first == 1 and len(rest) <= 1
        one_by_one[rest[0] + 1 if rest else 0] += 1
    senders, messages = dummies.send(np.ones(20_000, dtype=np.int64), rng)
    assert (messages[:20_000] == 1).all() and (np.bincount(senders) <= 2).all()
    extra = np.bincount(messages[20_000:], minlength=3)
    for counts in (one_by_one, np.array([20_000 - extra.sum(), *extra])):
        expect_law(counts, law)
        expect_broken(counts, np.array([0.65, *[0.35 / 3] * 3]))


def test_a_coin_is_exactly_the_rate() -> None:
    half = SentDummies(4, 0.5)
    assert half.messages(2, ChosenBits([SCALE // 2])) == [2]
    assert half.messages(2, ChosenBits([SCALE // 2 - 1, 3])) == [2, 3]
    assert SentDummies(4, 0.1).numerator == -(-SCALE // 10)  # rounded up
    assert SentDummies(4, 1.0).messages(0, ChosenBits([SCALE - 1, 1])) == [0, 1]
    word = SCALE // 2 - 1 << 32 | SCALE // 2  # two narrow words: one below the half, one not
    senders, messages = UserDummies(2, 0.5).send([0, 0], Chosen([word, 1]))
    assert sorted(senders.tolist()) == [0, 1, 1] and messages.tolist() == [0, 0, 1]


def test_the_shuffler_takes_two_messages_of_a_person_and_no_more(rng: Entropy) -> None:
    dummies = UserDummies(4, 0.5)
    batch = dummies.mix(["a", "mallory", "b", *["mallory"] * 50, "a"], [0, 3, 1, *[3] * 50, 2], rng)
    assert sorted(batch.tolist()) == [0, 1, 2, 3, 3]
    with pytest.raises(DataError, match="`senders` must be one for each of 3 messages"):
        dummies.mix(["a"], [0, 1, 2], rng)
    firsts = np.array([dummies.mix(np.arange(6), [0, 1, 1, 1, 1, 1], rng)[0] for _ in range(3000)])
    expect_mean((firsts == 0).astype(float)[:, None], [1 / 6])


def test_estimates_are_unbiased_with_their_standard_error(rng: Entropy) -> None:
    n, values = 400, np.repeat([0, 1, 2], [250, 149, 1])
    dummies = UserDummies(3, 0.3)
    found = [estimate_with_user_dummies(dummies, dummies.add(values, rng), n=n) for _ in range(400)]
    expect_mean(np.array([one.value for one in found]), np.bincount(values) / n)
    np.testing.assert_allclose(np.std([one.value for one in found], axis=0), found[0].standard_error, rtol=0.2)
    shares = project_shares(found[0].value)  # and of a population, people are a sample
    wanted = found[0].standard_error ** 2 + shares * (1 - shares) / n
    np.testing.assert_allclose(found[0].population_error ** 2, wanted, rtol=1e-9)


def test_a_batch_without_dummies_is_refused_and_what_dishonest_people_do_is_allowed_for() -> None:
    dummies = UserDummies(16, 0.5)
    assert dummies.people(15_000, 10_000, honest=10_000) == 10_000
    assert dummies.people(14_000, 10_000, honest=8_000) == 10_000
    for size, honest in ((10_000, 10_000), (10_000, 1_000), (20_000, 10_000), (9_999, 1), (20_001, 1)):
        with pytest.raises(DataError, match="they send others, or none"):
            estimate_with_user_dummies(dummies, np.zeros(size, dtype=np.int64), n=10_000, honest=honest)


@pytest.mark.exhaust
def test_the_least_epsilon_reaches_the_error_and_counts_on_the_honest() -> None:
    plan = plan_with_user_dummies(n=10_000, k=4, error=0.002, delta=1e-6, honest=0.8)
    assert plan.accuracy.error95 <= 0.002 and plan.central.honest_n == 8_000
    assert plan_with_user_dummies(n=10_000, k=4, epsilon=0.98 * plan.asked, honest=8_000).accuracy.error95 > 0.002
    assert plan.messages == 1.0 + plan.dummies.rate and plan.message_bytes > 200


@pytest.mark.parametrize(
    ("bad", "name"),
    [
        ({"k": 1}, "k"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 21.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"honest": 0}, "honest"),
        ({"honest": 10}, "honest"),
    ],
)
def test_parameters_outside_their_ranges_are_refused(bad: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"`{name}` must be"):
        user_dummies_for(**{"k": 4, "epsilon": 1.0, "delta": 1e-6, "honest": 1000, **bad})


@pytest.mark.exhaust
def test_what_cannot_be_sent_planned_or_promised_is_refused() -> None:
    for rate in (0.0, 1.5, float("nan")):
        with pytest.raises(ParameterError, match="`rate` must be"):
            UserDummies(4, rate)
    with pytest.raises(DataError, match="`messages` must be whole numbers"):
        UserDummies(4, 0.5).add([4], rng=simulation(1))
    with pytest.raises(UnsupportedError, match="no epsilon up to 20 keeps delta"):
        user_dummies_guarantee(UserDummies(4, 0.001), n=100, delta=1e-6)
    with pytest.raises(ParameterError, match="`honest` must be"):
        user_dummies_guarantee(UserDummies(4, 0.5), n=100, delta=1e-6, honest=101)
    with pytest.raises(ParameterError, match="`error` must be at least"):
        plan_with_user_dummies(n=1000, k=4, error=1e-9)
    with pytest.raises(ParameterError, match="give `epsilon` or `error`"):
        plan_with_user_dummies(n=1000, k=4)


@pytest.mark.exhaust
@pytest.mark.parametrize("rate", [0.1, 0.83, 1.0])
def test_nobody_who_sends_dummies_is_doubted_and_one_doubt_in_a_billion_is_the_bound(rate: float) -> None:
    from scipy.stats import binom

    dummies, n = UserDummies(4, rate), 60
    for size in range(2 * n + 1):
        can = [m for m in range(n + 1) if size >= m and binom.cdf(size - m, m, dummies.rate) >= 1e-9]
        assert dummies.most_followers(size, n) == max(can), size
    assert dummies.most_followers(2 * n, n) == n and dummies.most_followers(0, n) == 0
