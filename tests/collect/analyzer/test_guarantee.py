"""What is promised: always from the batch that was released, never from the plan."""

from itertools import pairwise
from typing import Any

import pytest
from tests.collect.analyzer.world import KRR, World, batch, campaign, seal

import dovetail as dt
from dovetail.collect.analyzer.sentences import guarantee_sentences
from dovetail.collect.campaign import guarantees as guarantee
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee, campaign_guarantees, honest_people
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing

SLOTS = f"public = 'homes.csv'\npublic_sha256 = '{'0' * 64}'\n"


def full(n: int, *, t: int = 1) -> ReleasedBatch:
    """A batch without bad reports and groups."""
    return ReleasedBatch(t, n, n, n)


def rounds(*sizes: int, epsilon: float = 1.0) -> list[dt.account.ShuffledRound]:
    """Rounds of the campaign's randomizer."""
    return [dt.account.ShuffledRound.of(dt.KRR(4, epsilon), n) for n in sizes]


def words(world: World) -> dict[str, Any]:
    return {line["name"]: line for line in world.answers.guarantee()["words"]}


def test_central_numbers_are_those_of_amplify_at_the_released_n() -> None:
    world = World((campaign(minimum=400, promise="assumed_honest = 1000000\nassumed_dishonest = 10"),))
    sealed = seal(world.campaign, [0] * 500, round=1)
    sealed[:7] = [each[:-1] + bytes([each[-1] ^ 1]) for each in sealed[:7]]
    world.analyzer.receive(batch(world.campaign, sealed))
    wanted = dt.amplify(dt.KRR(k=4, epsilon=1.0), n=493, delta=1e-6, honest=483)
    found = world.answers.guarantee(1)
    assert (found["sent"], found["n"], found["honest"]) == (500, 493, 483)
    central = found["central"]
    assert (central["epsilon"], central["all"], central["colluding"]) == (
        wanted.epsilon,
        wanted.all,
        wanted.colluding,
    )
    assert (central["n"], central["honest_n"], central["method"]) == (493, 483, wanted.method)
    assert world.answers.guarantee()["all_rounds"]["epsilon"] == wanted.epsilon  # one round so far


@pytest.mark.exhaust
def test_a_campaign_is_judged_on_the_scale_of_reports() -> None:
    world = World((campaign(minimum=400, promise="assumed_dishonest = 10"),))
    assert (
        world.answers.guarantee()["verdict"]["sentence"] == "strong, even if all others cheat"
    )  # of one report, so far
    world.run(1, [0] * 500)
    found = world.answers.guarantee()
    nobody, _, people = found["verdict"]["rows"]
    assert (nobody["epsilon"], people["epsilon"]) == (1.0, found["all_rounds"]["epsilon"])
    assert people["who"] == "the shuffler and 490 of 500 people"
    open_to_all = World((campaign(minimum=20, promise='authentication = "none"'),))
    open_to_all.run(1, [0] * 20)
    [alone] = open_to_all.answers.guarantee()["verdict"]["rows"]
    assert (alone["trusted"], alone["epsilon"]) == ("nobody", 1.0)


@pytest.mark.parametrize(
    ("promised", "n", "honest"),
    [
        ("", 100, 100),
        ("assumed_honest = 60", 100, 60),
        ("assumed_honest = 60", 50, 50),
        ("assumed_dishonest = 30", 100, 70),
        ("assumed_honest = 60\nassumed_dishonest = 30", 100, 60),
        ("assumed_honest = 60\nassumed_dishonest = 50", 100, 50),
        ("assumed_dishonest = 30", 20, -10),
    ],
)
def test_honest_people_are_the_fewer_of_those_assumed_and_those_left(promised: str, n: int, honest: int) -> None:
    assert honest_people(campaign(promise=promised), full(n)) == honest


def test_with_groups_the_smallest_one_counts_and_the_dishonest_sit_in_it() -> None:
    world = World((campaign(more='[groups]\nnames = ["a", "b", "c"]', promise="assumed_dishonest = 5"),))
    world.run(1, [0] * 100, groups=["a"] * 60 + ["b"] * 40)
    wanted = dt.amplify(dt.KRR(k=4, epsilon=1.0), n=40, delta=1e-6, honest=35)
    assert world.answers.guarantee(1)["central"]["epsilon"] == wanted.epsilon


def test_somebody_who_hides_among_nobody_has_the_local_promise() -> None:
    asked = campaign(promise="assumed_dishonest = 30")
    for n in (20, 30, 31):
        found = batch_guarantee(asked, full(n))
        assert isinstance(found.central, Missing) and "nobody" in found.central.reason
    assert isinstance(batch_guarantee(asked, full(32)).central, CentralDP)
    several = campaign_guarantees(asked, [full(20), full(20, t=2)])
    assert several.composed.epsilon == pytest.approx(2.0, 1e-5)  # type: ignore[union-attr]
    assert several.all_local == 2.0


def test_without_authentication_distinct_people_are_not_assured_and_the_local_promise_is_quoted() -> None:
    world = World((campaign(promise='authentication = "none"'),))
    world.run(1, [0] * 50)
    found = world.answers.guarantee()
    assert found["weakest"]["central"]["value"] is None and "distinct people" in found["weakest"]["central"]["reason"]
    assert found["all_rounds"]["value"] is None and found["local_of_all_rounds"] == 1.0
    assert "Anybody may send" in words(world) and "Latest batch (round 1)" not in words(world)


@pytest.mark.exhaust
def test_rounds_compose_as_the_library_composes_them() -> None:
    asked, sizes = campaign(), (120, 100, 110)
    found = campaign_guarantees(asked, [full(n, t=t) for t, n in enumerate(sizes)])
    assert found.composed.epsilon == dt.compose(rounds(*sizes), delta=1e-6).epsilon  # type: ignore[union-attr]
    assert (found.most_reports, found.all_local) == (3, 3.0)


@pytest.mark.exhaust
def test_a_device_takes_part_in_as_many_rounds_as_its_budget_allows_and_in_the_weakest() -> None:
    found = campaign_guarantees(campaign(budget=2.5), [full(n, t=t) for t, n in enumerate((120, 100, 110, 400))])
    wanted = dt.compose(rounds(100, 110), delta=1e-6)
    assert found.composed.epsilon == wanted.epsilon  # type: ignore[union-attr]
    assert (found.most_reports, found.all_local, found.rounds) == (2, 2.0, 4)


@pytest.mark.exhaust
def test_a_budget_in_decimals_pays_for_as_many_reports_as_devices_draw_with_it() -> None:
    tenth = campaign('name = "krr"\nk = 4\nepsilon = 0.1', budget=0.3)
    found = campaign_guarantees(tenth, [full(100, t=t) for t in range(1, 9)])
    assert (found.most_reports, found.all_local) == (3, 0.30000000000000004)  # the double above 3/10
    wanted = dt.compose(rounds(100, 100, 100, epsilon=0.1), delta=1e-6)
    assert found.composed.epsilon == wanted.epsilon  # type: ignore[union-attr]


@pytest.mark.exhaust
def test_many_different_sizes_are_rounded_against_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantee, "FEW", 2)
    sizes = [1000, 1017, 1034]
    found = campaign_guarantees(campaign(), [full(n, t=t) for t, n in enumerate(sizes)]).composed
    exact = dt.compose(rounds(*sizes), delta=1e-6)
    assert exact.epsilon is not None and found.epsilon is not None  # type: ignore[union-attr]
    assert exact.epsilon <= found.epsilon <= 1.05 * exact.epsilon  # type: ignore[union-attr]


def test_rounded_sizes_are_few_and_never_larger() -> None:
    sizes = sorted({int(1.1**power) for power in range(1, 120)})
    fewer = guarantee._fewer(sizes)
    assert len(set(fewer)) <= guarantee.FEW
    assert all(0 < rounded <= size for rounded, size in zip(fewer, sizes, strict=True))


def test_a_larger_crowd_never_promises_less() -> None:
    found = [batch_guarantee(campaign(), full(n)).central for n in (10, 30, 100, 1000)]
    assert all(big.epsilon <= small.epsilon for small, big in pairwise(found))  # type: ignore[union-attr]


def test_order_private_campaigns_promise_alpha_and_no_central_epsilon() -> None:
    asked = campaign(shuffle=SLOTS + "shuffler = 'mallows'\nalpha = 1.5\n[shuffle.groups]\nlabels = 'region'")
    found = campaign_guarantees(asked, [full(50, t=t) for t in (1, 2)])
    assert (found.alpha, found.all_alpha) == (1.5, 3.0)
    assert isinstance(found.composed, Missing) and "uniform" in found.composed.reason
    assert "Order of a batch" in {line.name for line in guarantee_sentences(asked, found)}
    within = campaign(shuffle=SLOTS + "shuffler = 'within_groups'\n[shuffle.groups]\nlabels = 'region'")
    assert campaign_guarantees(within, [full(50)]).alpha == 0.0
    refined = campaign(
        shuffle=SLOTS
        + "shuffler = 'rase'\nalpha = 6.0\nrefine = 'blocks'\nk = 2\n[shuffle.groups]\nlabels = 'region'"
    )
    alpha = campaign_guarantees(refined, [full(50)]).alpha  # theirs is alpha' = theta times a larger sensitivity
    assert isinstance(alpha, Missing) and "refined groups only" in alpha.reason
    mixed = campaign_guarantees(within, [full(50), ReleasedBatch(2, 50, 50, 3)])
    assert isinstance(mixed.alpha, Missing) and isinstance(mixed.all_alpha, Missing)


@pytest.mark.parametrize(
    "promised", ["", "assumed_honest = 3", 'authentication = "none"', "assumed_dishonest = 1000"]
)
def test_what_remains_when_the_shuffler_colludes_is_always_said(promised: str) -> None:
    world = World((campaign(promise=promised),))
    assert "ε = 1" in words(world)["If shuffler and analyzer collude"]["figure"]
    world.run(1, [0] * 20)
    assert world.answers.guarantee()["colluding"] == 1.0
    assert "ε = 1" in words(world)["If shuffler and analyzer collude"]["figure"]


def test_batches_with_too_few_valid_reports_are_named() -> None:
    world = World((campaign(minimum=20),))
    sealed = seal(world.campaign, [0] * 20, round=1)
    world.analyzer.receive(
        batch(world.campaign, [each[:-1] + bytes([each[-1] ^ 1]) for each in sealed[:3]] + sealed[3:])
    )
    found = world.answers.guarantee()
    short = {"t": 1, "sent": 20, "n": 17, "smallest": 17, "block": None, "own_alpha": None, "followers": None}
    assert found["short"] == [short]
    assert "17 of 20" in words(world)["Fewer valid reports than planned"]["meaning"]
    assert world.answers.status()["batches"][0]["short"]


def test_a_delta_that_allows_publishing_a_report_is_called_out() -> None:
    asked = World((campaign(promise="assumed_honest = 100"),))  # delta = 1e-6
    asked.run(1, [0] * 100)
    assert "But" not in words(asked)["Latest batch (round 1)"]["meaning"]
    loose = World((campaign(KRR, delta="0.01"),))
    loose.run(1, [0] * 100)
    assert "But delta" in words(loose)["Latest batch (round 1)"]["meaning"]


def test_before_the_first_batch_nothing_is_promised_for_batches() -> None:
    found = World((campaign(),)).answers.guarantee()
    assert found["weakest"] is None and found["all_rounds"]["value"] is None and found["rounds"] == 0


def test_before_the_first_batch_the_cap_is_told_and_nothing_is_called_zero() -> None:
    asked = campaign(budget=3.0)
    found = campaign_guarantees(asked, [])
    told = {line.name: line for line in guarantee_sentences(asked, found)}
    assert told["All reports of one device"].figure == "ε ≤ 3"
    assert "Nothing of it is spent" in told["All reports of one device"].meaning
    assert told["All batches together"].figure == ""
    assert not any(line.figure.endswith("= 0") for line in told.values())
    later = {line.name: line for line in guarantee_sentences(asked, campaign_guarantees(asked, [full(100)]))}
    assert "Spent so far: ε = 1, in 1 batch" in later["All reports of one device"].meaning


def test_reports_of_two_versions_leave_an_order_private_batch_without_a_central_guarantee() -> None:
    within = campaign(shuffle=SLOTS + "shuffler = 'within_groups'\n[shuffle.groups]\nlabels = 'region'")
    assert isinstance(batch_guarantee(within, ReleasedBatch(1, 50, 50, 50, block=20)).central, CentralDP)
    mixed = batch_guarantee(within, ReleasedBatch(1, 50, 50, 30, block=20)).central
    assert isinstance(mixed, Missing) and "two versions" in mixed.reason


def test_the_dishonest_sit_in_the_smallest_group_of_an_order_private_batch() -> None:
    within = campaign(
        shuffle=SLOTS + "shuffler = 'within_groups'\n[shuffle.groups]\nlabels = 'region'",
        promise="assumed_dishonest = 5",
    )
    assert honest_people(within, ReleasedBatch(1, 50, 50, 50, block=20)) == 15
