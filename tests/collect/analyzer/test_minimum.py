"""Below the minimum of valid reports nothing is told: not on the page, in answers or exports, nor by differences."""

import asyncio
from collections.abc import Callable
from itertools import combinations
from typing import Any

import httpx
import pytest
from tests.collect.analyzer.world import KRR, LAPLACE, World, batch, campaign, reports_of, seal, token

from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import separable
from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.tokens import Token, Tokens
from dovetail.collect.http import Refusal

MINIMUM = 10
PLACES = (
    "status estimates estimates/latest estimates/1 estimates/2 window?t=2&w=1 window?t=2&w=2 frequencies guarantee"
)
FILES = ("export.csv", "export.parquet")
GROUPS = '[groups]\nnames = ["north", "south", "west"]'


def shown(analyzer: Analyzer, id: str) -> dict[str, bytes]:
    """Everything that a subscriber and a visitor can get, by its place."""
    app = analyzer_app(analyzer, tokens=Tokens((Token(token("t")),)), public_page=True)

    async def ask() -> dict[str, bytes]:
        headers = {"Authorization": "Bearer t"}
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://analyzer", headers=headers
        ) as client:
            inside = [f"/v1/campaigns/{id}/{name}" for name in (*PLACES.split(), *FILES)]
            return {place: (await client.get(place)).content for place in (*inside, "/", "/live", "/metrics")}

    return asyncio.run(ask())


def fill(world: World, report: Any, *, round: int, valid: int = 1, groups: Any = None) -> None:
    """A batch of the minimum size, of which only the first `valid` reports can be read, all of them alike."""
    asked = world.campaign
    good = seal(asked, [report] * valid, round=round, groups=groups)
    garbage = [bytes(len(good[0])) + bytes([n]) for n in range(MINIMUM - valid)]
    world.analyzer.receive(batch(asked, [*good, *(each[1:] for each in garbage)], rounds=(round,)))


@pytest.mark.exhaust
@pytest.mark.parametrize(("randomizer", "reports"), [(KRR, (0, 3)), (LAPLACE, (10, 90))])
def test_a_batch_filled_up_with_garbage_shows_nobodys_report(randomizer: str, reports: tuple[int, int]) -> None:
    """Whatever the one honest report says, every answer is the same, byte for byte."""
    answers = []
    for report in reports:
        world = World((campaign(randomizer, minimum=MINIMUM),))
        fill(world, report, round=1)
        assert world.answers.rounds()[0].numbers is None
        found = shown(world.analyzer, "commute")
        found.pop("/metrics")  # it holds how long the batch took
        answers.append(
            {place: body.replace(world.answers.batches()[0].id.encode(), b"") for place, body in found.items()}
        )
    assert answers[0] == answers[1]
    assert b"withheld" in answers[0]["/"] and b'"withheld":true' in answers[0]["/v1/campaigns/commute/estimates"]
    assert b"fewer valid reports than the minimum of 10" in answers[0]["/v1/campaigns/commute/estimates/1"]


@pytest.mark.exhaust
def test_one_more_valid_report_and_the_estimate_is_there() -> None:
    for valid, told in ((MINIMUM - 1, False), (MINIMUM, True)):
        world = World((campaign(minimum=MINIMUM),))
        fill(world, 0, round=1, valid=valid)
        (only,) = world.answers.rounds()
        assert only.withheld is not told and bool(only.by_group) is told
        assert bool(world.answers.document(only)["groups"]) is told
        assert (b"bus" in shown(world.analyzer, "commute")["/v1/campaigns/commute/export.csv"]) is told


def test_pooled_rounds_leave_out_what_is_withheld() -> None:
    """A window over a good round and a withheld one is the good round's, so that no difference isolates the other."""
    world = World((campaign(minimum=MINIMUM),))
    world.run(1, [0, 1, 2, 3] * 5)
    fill(world, 3, round=2)
    both, one = world.answers.window(2, width=2), world.answers.window(1, width=1)
    assert both["groups"][0]["value"] == one["groups"][0]["value"] and both["groups"][0]["missing"] == [2]
    assert world.answers.latest().t == 1
    for ask in (lambda: world.answers.at(2), lambda: world.answers.frequencies(2)):
        with pytest.raises(Refusal, match="its estimates are withheld"):
            ask()
    with pytest.raises(Refusal):
        world.answers.window(2, width=1)


def leaking(tell: Callable[..., set[str]], sizes: dict[str, int], minimum: int) -> list[set[str]]:
    """Sets of groups with too few reports whose sum somebody can compute from everybody's and those told."""
    told = tell(sizes, minimum=minimum)
    known = [set(some) for count in range(len(told) + 1) for some in combinations(sorted(told), count)]
    sums = known + [set(sizes) - some for some in known]
    return [names for names in sums if 0 < sum(sizes[name] for name in names) < minimum]


def test_no_sum_or_difference_of_what_is_shown_rests_on_fewer_than_the_minimum() -> None:
    """Every split of people into four groups of up to six, everybody being enough: exhaustively."""
    caught = 0
    for code in range(7**4):
        sizes = {name: code // 7**place % 7 for place, name in enumerate("abcd")}
        if sum(sizes.values()) < 3:
            continue
        assert leaking(separable, sizes, 3) == [], sizes
        wrong = lambda sizes, minimum: {name for name, n in sizes.items() if n >= minimum}  # noqa: E731
        caught += bool(leaking(wrong, sizes, 3))
    assert caught > 100, "a rule that looks at each group alone would be found"


def test_a_group_below_the_minimum_has_no_line_of_its_own_and_cannot_be_subtracted() -> None:
    world = World((campaign(minimum=MINIMUM, more=GROUPS),))
    names = ["north"] * 12 + ["south"] * 15 + ["west"] * 2
    world.run(1, [0] * len(names), groups=names)
    found = world.answers.document(world.answers.latest())
    assert [each["group"] for each in found["groups"]] == [None, "south"]  # north would give west away
    world.run(2, [0] * 40, groups=["north"] * 20 + ["south"] * 20)
    assert [each["group"] for each in world.answers.frequencies()["groups"]] == [None, "north", "south"]


def test_the_reports_that_fill_a_batch_are_valid_where_nobody_cheats() -> None:
    world = World((campaign(minimum=MINIMUM),))
    reports = reports_of(world.campaign, [0] * MINIMUM, "honest")
    world.analyzer.receive(batch(world.campaign, seal(world.campaign, reports, round=1)))
    assert not world.answers.latest().withheld
