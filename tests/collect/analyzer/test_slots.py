"""Order-private batches: estimates per public group of the roster slots, widened by what moved."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collect.analyzer.world import ANALYZER, LAPLACE, NOON, batch, campaign, reports_of, seal, store
from tests.statistics import rng_of

import dovetail as dt
from dovetail.collect.analyzer.analyzer import Analyzer
from dovetail.collect.analyzer.answers import RosterSlotEstimator
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.clock import FrozenClock
from dovetail.core.errors import ConfigError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.noise.local import central_guarantee
from dovetail_protocol.campaign import Campaign

REGIONS = ["east"] * 30 + ["west"] * 20
Setting = tuple[Campaign, RosterSlotEstimator]
CHAIN = np.repeat([0, 1, 2], [20, 15, 15])  # neighbours overlap
LABELS = np.array([0] * 30 + [1] * 20)


def order_private(folder: Path, randomizer: str, shuffler: str, labels: Sequence[Any] = REGIONS) -> Setting:
    """A campaign of 50 roster slots in groups of labels, with what is public about them."""
    table = "region\n" + "\n".join(map(str, labels)) + "\n"
    (folder / "homes.csv").write_text(table)
    digest = sha256(table.encode()).hexdigest()
    near = "" if labels is REGIONS else "\nradius = 1"
    rule = f"public = 'homes.csv'\npublic_sha256 = '{digest}'\n{shuffler}\n[shuffle.groups]\nlabels = 'region'{near}"
    asked = campaign(randomizer, shuffle=rule)
    slots = RosterSlotEstimator.load(asked, folder)
    assert slots is not None
    return asked, slots


def release(
    asked: Campaign, slots: RosterSlotEstimator, values: list[Any], present: Any, *, round: int, bad: int = 0
) -> bytes:
    """A batch of the devices that are present, as the shuffler releases it; the first `bad` places are spoilt."""
    shuffler: Any = slots.shuffler if present.all() else slots.shuffler.restrict(present)  # type: ignore[attr-defined]
    reports = reports_of(asked, [values[slot] for slot in np.flatnonzero(present)], f"{asked.id} {round}")
    order = shuffler.permutation(rng_of(f"slots {round}"))
    sealed = seal(asked, [reports[i] for i in order], round=round)
    sealed = [each[:-1] + bytes([each[-1] ^ 1]) if i < bad else each for i, each in enumerate(sealed)]
    entries = [int(slot).to_bytes(4) + each for slot, each in zip(np.flatnonzero(present), sealed, strict=True)]
    return batch(asked, entries, rounds=(round,))


def analyzer(asked: Campaign, slots: RosterSlotEstimator) -> Analyzer:
    campaigns = AnalyzerCampaigns.of((asked,), (ANALYZER,))
    return Analyzer(campaigns, store=store(), clock=FrozenClock(NOON), slots={asked.id: slots})


def test_groups_that_nothing_leaves_are_estimated_as_by_the_library(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    one, values = analyzer(asked, slots), [20.0] * 30 + [70.0] * 20
    present = np.arange(50) % 7 != 0
    one.receive(release(asked, slots, values, present, round=1))
    answers = one.answers(asked.id)
    found = answers.latest().by_group
    assert list(found) == ["", "east", "west"]
    placed = list(one.store.reports_by_slot(answers.batches()[0].id))
    reports = np.array([asked.mechanism.decode(report) for _, report in placed])
    labels = LABELS[[slot for slot, _ in placed]]
    wanted = dt.estimate_group_means(dt.Laplace(0.0, 100.0, epsilon=2.0, grid=1.0), reports, labels)
    for row, name in enumerate(("east", "west")):
        assert float(found[name].value) == float(wanted.value[row])
        assert float(found[name].standard_error) == float(wanted.standard_error[row])
    assert answers.document(answers.latest())["groups"][1]["group"] == "east"


@pytest.mark.exhaust
@pytest.mark.parametrize("bad", [0, 6])
def test_where_reports_move_between_groups_intervals_are_widened_as_by_the_library(tmp_path: Path, bad: int) -> None:
    rule = "shuffler = 'mallows'\nalpha = 400.0"
    asked, slots = order_private(tmp_path, 'name = "krr"\nk = 2\nepsilon = 3.0', rule, labels=1 + CHAIN)
    assert 0.05 < 1.0 - slots.shuffler.mixing(CHAIN)[2, 2] < 0.2  # of the last group
    one, values = analyzer(asked, slots), [0] * 35 + [1] * 15
    for t in range(1, 4):
        one.receive(release(asked, slots, values, np.ones(50, dtype=bool), round=t, bad=bad))
    for each, counted in zip(one.answers(asked.id).rounds(), one.answers(asked.id).batches(), strict=True):
        placed = [(slot, report) for slot, report in one.store.reports_by_slot(counted.id) if report]
        assert len(placed) == 50 - bad
        reports = np.array([asked.mechanism.decode(report) for _, report in placed])
        here = CHAIN[[slot for slot, _ in placed]]
        wanted = dt.estimate_groups(dt.KRR(k=2, epsilon=3.0), reports, here, slots.shuffler.mixing(CHAIN))
        assert float(np.max(each.by_group["3"].bias_bound)) >= float(wanted.bias_bound[2, 0]) > 0.05
        np.testing.assert_allclose(each.by_group["3"].value, wanted.value[2])
        np.testing.assert_allclose(each.by_group["3"].standard_error, wanted.standard_error[2])


def test_a_group_of_bad_reports_only_leaves_no_group_estimates(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    one = analyzer(asked, slots)
    one.receive(release(asked, slots, [20.0] * 50, np.ones(50, dtype=bool), round=1, bad=30))
    found = one.answers(asked.id).latest()
    assert list(found.by_group) == [""] and found.n == 20


def test_a_public_table_that_is_not_the_signed_one_is_refused(tmp_path: Path) -> None:
    asked, _ = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    changed = (tmp_path / "homes.csv").read_text().replace("east\nwest", "west\neast")
    (tmp_path / "homes.csv").write_text(changed)
    with pytest.raises(ConfigError, match="has another SHA-256 than the campaign"):
        RosterSlotEstimator.load(asked, tmp_path)


def test_campaigns_without_labelled_slots_have_no_slots(tmp_path: Path) -> None:
    assert RosterSlotEstimator.load(campaign(), tmp_path) is None


def test_a_report_that_is_repeated_at_another_slot_counts_at_its_first_one(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    one, (first, second) = analyzer(asked, slots), seal(asked, [20, 30], round=1)
    entries = [slot.to_bytes(4) + each for slot, each in ((3, first), (4, second), (9, first))]
    one.receive(batch(asked, entries))
    (counted,) = one.store.batches(asked.id)
    assert (counted.n, counted.rejected) == (2, {"copy": 1})
    assert [slot for slot, report in one.store.reports_by_slot(counted.id) if report] == [3, 4]


def test_a_slot_that_the_public_table_does_not_have_stops_no_query(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    one, sealed = analyzer(asked, slots), seal(asked, [20, 30], round=1)
    one.receive(batch(asked, [int(slot).to_bytes(4) + each for slot, each in zip((3, 50), sealed, strict=True)]))
    assert list(one.answers(asked.id).latest().by_group) == [""]


@pytest.mark.exhaust
def test_a_batch_mixed_inside_groups_quotes_the_central_guarantee_of_its_smallest_group(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, 'name = "krr"\nk = 2\nepsilon = 1.0', "shuffler = 'within_groups'")
    one, present = analyzer(asked, slots), np.arange(50) % 7 != 0
    one.receive(release(asked, slots, [0] * 50, np.ones(50, dtype=bool), round=1))
    one.receive(release(asked, slots, [0] * 50, present, round=2, bad=20))  # 25 in the east, of whom 5 are left
    answers, randomizer = one.answers(asked.id), dt.KRR(k=2, epsilon=1.0)
    east, west = int(present[:30].sum()) - 20, int(present[30:].sum())
    assert 1 < east < west < 20
    for t, n in ((1, 20), (2, east)):
        found = answers.guarantee(t)
        assert (found["block"], found["central"]["n"]) == (n, n)
        assert found["central"]["epsilon"] == dt.amplify(randomizer, n=n, delta=1e-6).epsilon
    both = dt.compose([dt.account.ShuffledRound(1.0, 20), dt.account.ShuffledRound(1.0, east)], delta=1e-6)
    assert answers.guarantee()["all_rounds"]["epsilon"] == both.epsilon
    told = " ".join(str(line) for line in answers.guarantee()["words"])
    assert f"{east} of them in the smallest part" in told


def test_a_group_of_one_valid_report_leaves_no_central_guarantee(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    one, present = analyzer(asked, slots), np.arange(50) >= 29
    one.receive(release(asked, slots, [20.0] * 50, present, round=1))
    found = one.answers(asked.id).guarantee(1)
    assert found["block"] == 1 and "hides among nobody" in found["central"]["reason"]


@pytest.mark.exhaust
def test_a_rase_that_mixes_everybody_quotes_everybody_and_a_refined_one_the_alpha_of_the_public_groups(
    tmp_path: Path,
) -> None:
    rule = "shuffler = 'rase'\nalpha = {alpha}\nrefine = 'blocks'\nk = 5"
    asked, slots = order_private(tmp_path, LAPLACE, rule.format(alpha=1.0))
    one = analyzer(asked, slots)
    one.receive(release(asked, slots, [20.0] * 50, np.ones(50, dtype=bool), round=1))
    assert one.answers(asked.id).guarantee(1)["block"] == 50
    assert one.answers(asked.id).guarantee()["alpha_of_a_batch"] == 0.0
    asked, slots = order_private(tmp_path, LAPLACE, rule.format(alpha=200.0))
    one, present = analyzer(asked, slots), np.arange(50) % 7 != 0
    for t, here in ((1, np.ones(50, dtype=bool)), (2, present)):
        one.receive(release(asked, slots, [20.0] * 50, here, round=t))
    own = slots.shuffler.facts()["own_alpha"]
    assert own > slots.shuffler.guarantee.alpha
    assert own >= slots.shuffler.restrict(present).facts()["own_alpha"]  # of fewer people, nearer together
    found = one.answers(asked.id).guarantee()
    assert found["alpha_of_a_batch"] == own and found["alpha_of_all_batches"] == 2 * own
    assert "uniform" in found["latest"]["central"]["reason"]


POINTS = np.column_stack((np.repeat(np.arange(10), 5), np.zeros(50, dtype=int)))  # five at each of ten places


def order_of_points(folder: Path, points: Any, rule: str, near: str) -> Setting:
    """A campaign of slots in the plane."""
    table = "x,y\n" + "".join(f"{x},{y}\n" for x, y in points)
    (folder / "homes.csv").write_text(table)
    digest = sha256(table.encode()).hexdigest()
    shuffle = (
        f"public = 'homes.csv'\npublic_sha256 = '{digest}'\n{rule}\n[shuffle.groups]\npoints = ['x', 'y']\n{near}"
    )
    asked = campaign('name = "krr"\nk = 2\nepsilon = 1.0', shuffle=shuffle)
    slots = RosterSlotEstimator.load(asked, folder)
    assert slots is not None
    return asked, slots


@pytest.mark.exhaust
@pytest.mark.parametrize("shuffler", ["mallows", "noisy_sort", "planar", "best"])
def test_groups_of_points_quote_the_central_guarantee_of_people_at_one_point_as_run_does(
    tmp_path: Path, shuffler: str
) -> None:
    asked, slots = order_of_points(tmp_path, POINTS, f"shuffler = '{shuffler}'\nalpha = 8.0", "radius = 1.5")
    one, present = analyzer(asked, slots), np.arange(50) % 9 != 0  # four are left at six of the places
    for t, here in ((1, np.ones(50, dtype=bool)), (2, present)):
        one.receive(release(asked, slots, [0] * 50, here, round=t))
    answers, randomizer = one.answers(asked.id), dt.KRR(k=2, epsilon=1.0)
    assert answers.latest().by_group.keys() == {""}
    for t, n in ((1, 5), (2, 4)):
        found = answers.guarantee(t)
        assert (found["block"], found["central"]["n"]) == (n, n)
        assert found["central"]["epsilon"] == dt.amplify(randomizer, n=n, delta=1e-6).epsilon
    run = central_guarantee(randomizer, slots.shuffler, delta=1e-6, honest=None)
    assert isinstance(run, CentralDP) and run.epsilon == answers.guarantee(1)["central"]["epsilon"]


def test_groups_of_nearest_points_that_all_differ_have_no_central_guarantee_and_say_why(tmp_path: Path) -> None:
    points = [(place, place * place) for place in range(50)]
    asked, slots = order_of_points(tmp_path, points, "shuffler = 'mallows'\nalpha = 8.0", "nearest = 4")
    one = analyzer(asked, slots)
    one.receive(release(asked, slots, [0] * 50, np.ones(50, dtype=bool), round=1))
    found = one.answers(asked.id).guarantee(1)
    assert found["block"] is None and "stand for each other" in found["central"]["reason"]
    run = central_guarantee(dt.KRR(k=2, epsilon=1.0), slots.shuffler, delta=1e-6, honest=None)
    assert isinstance(run, Missing) and "nobody else could stand in it" in run.reason


@pytest.mark.exhaust
def test_an_order_that_is_not_uniform_or_whose_table_is_not_at_hand_has_no_central_guarantee(tmp_path: Path) -> None:
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'mallows'\nalpha = 40.0", labels=range(50))
    one = analyzer(asked, slots)
    one.receive(release(asked, slots, [20.0] * 50, np.ones(50, dtype=bool), round=1))
    assert isinstance(one.answers(asked.id).guarantees().composed, Missing)
    assert one.answers(asked.id).guarantee(1)["block"] is None
    asked, slots = order_private(tmp_path, LAPLACE, "shuffler = 'within_groups'")
    bare = Analyzer(AnalyzerCampaigns.of((asked,), (ANALYZER,)), store=store(), clock=FrozenClock(NOON))
    bare.receive(release(asked, slots, [20.0] * 50, np.ones(50, dtype=bool), round=1))
    assert "public table" in bare.answers(asked.id).guarantee(1)["central"]["reason"]
