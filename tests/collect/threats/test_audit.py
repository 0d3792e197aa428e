"""The audit passes the right build and catches broken ones; each verdict is wrong with probability 1e-9 at most."""

from __future__ import annotations

import math
from itertools import count

import pytest
from scipy.stats import binom
from tests.collect.threats.builds import DOCUMENT, EPSILON, Biased, Owner, Remembering, Seeded, Unmoved, order
from tests.collect.threats.games import linkage, membership, missed
from tests.statistics import FALSE_ALARM, rng_of

from dovetail.collect.simulate.deployment import ThrowawayCampaign
from dovetail.core.entropy import system_entropy as shuffling
from dovetail.core.errors import DataError
from dovetail_device.entropy import system_entropy


@pytest.fixture(scope="module")
def world() -> ThrowawayCampaign:
    return ThrowawayCampaign.of(DOCUMENT, devices=80)


TRIALS = 1000
KEEP = math.exp(EPSILON) / (1 + math.exp(EPSILON))  # the chance that a right device sends its value


# membership: what one device's messages tell about its value, to who opens both envelopes


@pytest.mark.exhaust
def test_a_right_device_tells_no_more_than_epsilon(world: ThrowawayCampaign) -> None:
    owner, rounds = Owner(world, world.devices[0], system_entropy()), count(1)
    seen = membership(lambda value: owner.report(value, next(rounds)), trials=TRIALS, false_alarm=FALSE_ALARM)
    assert 0.0 < seen.epsilon <= EPSILON, "something is found, so that the game is worth playing"
    assert missed(KEEP, 1 - KEEP, epsilon=0.0, trials=TRIALS) <= FALSE_ALARM


@pytest.mark.exhaust
def test_a_biased_coin_is_caught(world: ThrowawayCampaign) -> None:
    """It sends its value with probability .936 at least: its words, as a number, are rarely above e / (1 + e)."""
    assert missed(0.936, 0.064, epsilon=EPSILON, trials=TRIALS) <= FALSE_ALARM
    owner, rounds = Owner(world, world.devices[0], Biased(system_entropy())), count(1)
    seen = membership(lambda value: owner.report(value, next(rounds)), trials=TRIALS, false_alarm=FALSE_ALARM)
    assert seen.epsilon > EPSILON


@pytest.mark.exhaust
def test_a_right_device_tells_no_more_when_its_messages_are_lost(world: ThrowawayCampaign) -> None:
    owner, rounds = Owner(world, world.devices[0], system_entropy()), count(1)
    seen = membership(lambda value: owner.report(value, next(rounds), lost=2), trials=600, false_alarm=FALSE_ALARM)
    assert seen.epsilon <= EPSILON
    assert len(owner.report(1, next(rounds), lost=2)) == 1, "the same message again"


@pytest.mark.exhaust
def test_a_report_that_is_randomized_again_on_retry_is_caught(world: ThrowawayCampaign) -> None:
    """Of a device that has no outbox: each try is that of another one, and the attacker believes most of them."""
    tries, rounds = [Owner(world, world.devices[0], system_entropy()) for _ in range(15)], count(1)
    most = float(binom.sf(7, 15, KEEP))
    assert missed(most, 1 - most, epsilon=EPSILON, trials=440) <= FALSE_ALARM

    def play(value: int) -> bool:
        round = next(rounds)
        return sum(each.report(value, round)[0] for each in tries) > 7

    assert membership(play, trials=440, false_alarm=FALSE_ALARM).epsilon > EPSILON


def three(world: ThrowawayCampaign, *, shared: bool) -> list[Owner]:
    """A target and two devices of the attacker; all of one seed, or each with randomness of its own."""
    return [Owner(world, keys, Seeded(7) if shared else system_entropy()) for keys in world.devices[:3]]


@pytest.mark.exhaust
@pytest.mark.parametrize(("shared", "caught"), [(False, False), (True, True)])
def test_one_seed_for_all_devices_is_caught_by_who_owns_two_of_them(
    world: ThrowawayCampaign, shared: bool, caught: bool
) -> None:
    target, yes, no = three(world, shared=shared)
    rounds = count(1)

    def play(value: int) -> tuple[object, ...]:
        round = next(rounds)
        return target.report(value, round), yes.report(1, round), no.report(0, round)

    seen = membership(play, trials=300, false_alarm=FALSE_ALARM)
    assert (seen.epsilon > EPSILON) == caught


# linkage: what a batch tells about who sent which report


@pytest.mark.exhaust
def test_a_right_shuffler_links_nobody(world: ThrowawayCampaign) -> None:
    assert linkage(order(world, rng=shuffling())).p_value >= FALSE_ALARM


def test_the_words_that_move_nothing_move_nothing() -> None:
    assert Unmoved().permutation(80).tolist() == list(range(80))


@pytest.mark.exhaust
def test_a_shuffler_that_does_not_shuffle_is_caught(world: ThrowawayCampaign) -> None:
    seen = linkage(order(world, store=Remembering, rng=Unmoved()))
    assert (seen.success, seen.chance) == (1.0, 1 / 80)
    assert seen.p_value < FALSE_ALARM


@pytest.mark.exhaust
def test_two_faults_are_needed_because_reports_lie_by_keyed_tags(world: ThrowawayCampaign) -> None:
    assert linkage(order(world, rng=Unmoved())).p_value >= FALSE_ALARM
    assert linkage(order(world, store=Remembering, rng=shuffling())).p_value >= FALSE_ALARM


@pytest.mark.parametrize(
    "wrong",
    [
        list(range(80)),
        list(range(80))[::-1],
        [*range(40, 80), *range(40)],
        [place ^ 1 for place in range(80)],
        [*range(0, 80, 2), *range(1, 80, 2)],
    ],
    ids=["unmoved", "reversed", "cut", "neighbours swapped", "two hands"],
)
def test_orders_that_remember_arrival_are_caught(wrong: list[int]) -> None:
    assert linkage(wrong).p_value < FALSE_ALARM


def test_the_p_values_of_uniform_orders_are_large() -> None:
    rng = rng_of("uniform orders")
    tried = [linkage(rng.permutation(30)).p_value for _ in range(2000)]
    assert sum(p <= 0.05 for p in tried) <= 2000 * 0.05, "a bound: smaller p-values are rarer than they say"


@pytest.mark.parametrize("wrong", [[0], [0, 0], [1, 2], [[0, 1]], []])
def test_what_is_no_order_is_refused(wrong: list[int]) -> None:
    with pytest.raises(DataError):
        linkage(wrong)


def test_the_bound_on_epsilon_is_wrong_as_rarely_as_it_says() -> None:
    """Of one exact law, e^1 to 1, bounds at false alarm 0.2 are above 1 in at most a fifth of the games."""
    rng = rng_of("bounds")

    def play(world: int) -> int:
        return int(rng.below(1 << 20, 1)[0] < (1 << 20) * (0.7310585786300049 if world else 0.2689414213699951))

    above = sum(membership(play, trials=60, false_alarm=0.2).epsilon > 1.0 for _ in range(200))
    assert above <= 200 * 0.2
