"""Dummies in the service: drawn once, like reports, stated and checked, subtracted, and gone after delivery."""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.statistics import expect_broken, expect_law, expect_mean
from tests.tiers import tiered
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.sentences import summarize
from dovetail.collect.batch import Header, entry_bytes
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, batch_guarantee, compose_batches, guarantee_of_rounds
from dovetail.collect.campaign.terms import added_dummies, draft_campaign, law_of
from dovetail.collect.files import save_keys
from dovetail.collect.shuffler.batches import BatchDummies
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.simulate.deployment import COMMUTE, PERIOD, ThrowawayCampaign, schedule
from dovetail.collect.simulate.faults import FaultRates, MessageFate, Role, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, simulate
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.missing import Missing
from dovetail.shuffle.sampling.dummies import Dummies, GaussianDummies, TruncatedGeometric
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import Role as KeyRole
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import Rejected, inner_bytes, inner_info, plain_bytes

ALL_FAULTS = FaultRates(loss=0.15, duplicate=0.15, delay=0.15, crash=0.01)
RULE = {"epsilon": 1.0, "delta": 1e-3, "reach": 13}
DEVICES, K = 12, 4
ROLES: tuple[KeyRole, ...] = ("owner", "shuffler", "analyzer")


def tables(*, rounds: int = 2, **changes: Any) -> dict[str, Any]:
    """A campaign whose shuffler adds dummies to nearly open answers."""
    own: dict[str, Any] = {
        "randomizer": {**COMMUTE["randomizer"], "epsilon": 12.0},
        "rounds": schedule(rounds, grace=60.0),
        "batch": {"minimum": 10},
        "promise": {"delta": 1e-2, "trust": "shuffler"},
        "dummies": RULE,
    }
    return COMMUTE | own | changes


@cache
def world(rounds: int = 1) -> ThrowawayCampaign:
    return ThrowawayCampaign.of(tables(rounds=rounds), DEVICES)


class Story:
    """One round of a campaign whose shuffler dies at one of its operations after the round is over."""

    def __init__(
        self, dies_at: int = 0, fates: list[MessageFate] | None = None, stores: Any = None, seed: int = 7
    ) -> None:
        self._armed, self._left, self.asked, self._fates = False, dies_at, 0, list(fates or [])
        self.simulation = Simulation(
            world(),
            dies=self._dies,
            fate=self._fate,
            stores=stores or ("sqlite://", "sqlite://"),
            rng=simulation(seed),
        )
        self.fleet = SimulatedDevices.of(world(), self.simulation.dying, SeededChance(1))
        self.fleet.report(1, range(DEVICES), self.simulation.network, self.simulation.clock)
        self._armed = True

    def play(self) -> None:
        for _ in range(8):
            self.simulation.pass_time(PERIOD)
            self.simulation.deliver_late()

    def _dies(self, role: Role) -> bool:
        if role != "shuffler" or not self._armed:
            return False
        self.asked += 1
        return self.asked == self._left

    def _fate(self, role: Role) -> MessageFate:
        return self._fates.pop(0) if role == "shuffler" and self._fates else "arrives"


def opened(simulation_: Simulation) -> np.ndarray:
    """The symbols of the only batch that left, in its order."""
    [(_, body)] = simulation_.audit._batches.values()
    campaign, length = world().campaign, entry_bytes(world().campaign)
    assert world().analyzer.opening is not None
    opener, info = world().analyzer.opening.opener(), inner_info(campaign, 1)
    plains = [opener.open(body[start : start + length], info) for start in range(0, len(body), length)]
    assert all(one is not None and len(one) == plain_bytes(campaign) and one[:3] == b"\1\0\0" for one in plains)
    return np.array([campaign.mechanism.decode(one[3:]) for one in plains if one])


# Laws


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("small", "late"),
    tiered(
        [(small, late) for small in ("wait", "merge", "drop") for late in ("refuse", "next")],
        first=lambda case: case == ("merge", "next"),
    ),
)
def test_every_rule_accounts_for_every_report_among_dummies(small: str, late: str) -> None:
    asked = tables(rounds=2, batch={"minimum": 8, "small": small, "late": late})
    found = simulate(ThrowawayCampaign.of(asked, 10), faults=ALL_FAULTS, seed=3)
    assert found.sound and found.verdict.batched >= 8
    assert sum(result.n for result in found.results) == found.verdict.batched  # people, dummies are not counted
    assert all((np.abs(each.value - each.truth) * each.n <= RULE["reach"] + 1.5).all() for each in found.results)


@pytest.mark.exhaust
@pytest.mark.parametrize("dies_at", tiered(range(1, 72), first=lambda at: at in (22, 30, 33)))
def test_a_crash_between_closing_and_delivery_never_draws_dummies_again(
    dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, drawn, draw = Story(dies_at, ["lost", "unanswered"]), list[int](), BatchDummies.draw

    def noted(campaign: Campaign, round: int, entries: int, rng: Entropy) -> BatchDummies:
        [known] = [each for each in story.simulation.store.rounds(campaign.id) if each.number == round]
        assert known.state in ("open", "held"), "its dummies are drawn, and may have been sent"
        drawn.append((made := draw(campaign, round, entries, rng)).size)
        return made

    monkeypatch.setattr(BatchDummies, "draw", noted)
    story.play()
    assert story.simulation.crashes["shuffler"] == 1 or dies_at > story.asked
    assert story.simulation.verdict().sound and story.simulation.audit.count_miscounted(story.simulation.counted) == 0
    assert len(drawn) <= 2  # the first then belongs to a batch that was abandoned before anything left
    assert opened(story.simulation).size == DEVICES + drawn[-1]  # one batch, the same bytes whenever it was sent
    [batch] = CampaignAnswers(world().campaign, story.simulation.counted).batches()
    assert (batch.count, batch.n, batch.smallest) == (DEVICES, DEVICES, DEVICES)


@pytest.mark.exhaust
def test_a_batch_that_is_sent_again_has_the_same_dummies() -> None:
    story = Story(fates=["lost", "repeated", "unanswered"])
    story.play()
    assert story.simulation.verdict().changed == 0 and len(story.simulation.audit._batches) == 1


@pytest.mark.exhaust
def test_dummies_have_their_law_and_look_like_reports(rng: Entropy) -> None:
    campaign = world().campaign
    law = added_dummies(campaign)
    assert isinstance(law, Dummies)
    made = [BatchDummies.draw(campaign, 1, 0, rng) for _ in range(4000)]
    counts = np.bincount(
        np.concatenate([np.bincount(one._symbols, minlength=K) for one in made]), minlength=2 * law.reach + 1
    )
    weights = np.array(law.noise.weights, dtype=np.float64)
    expect_law(counts, weights / weights.sum())
    other = np.array(TruncatedGeometric(1, 2, law.reach).weights, dtype=np.float64)
    expect_broken(counts, other / other.sum())
    sealed = [made[0].seal(place) for place in range(made[0].size)]
    assert {len(one) for one in sealed} == {inner_bytes(campaign)} and len(set(sealed)) == len(sealed)
    assert "_symbols" not in repr(made[0])


@pytest.mark.exhaust
def test_a_place_in_the_batch_does_not_tell_a_dummy_from_a_report() -> None:
    means = []
    for seed in range(110):
        story = Story(seed=seed)
        story.play()
        [(_, body)] = story.simulation.audit._batches.values()
        entries = story.simulation.audit._entries(body)
        places = [place for place, inner in enumerate(entries) if inner in story.simulation.audit._by_inner]
        means.append(float(np.mean(places)) / (len(entries) - 1))
    expect_mean(np.array(means)[:, None], [0.5], against=[0.1])  # reports before dummies: about 0.1


def test_after_delivery_no_table_log_or_metric_holds_their_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    place = tmp_path / "shuffler.sqlite"
    story = Story(stores=(f"sqlite:///{place}", "sqlite://"))
    story.play()
    total = opened(story.simulation).size
    story.simulation.close()
    with sqlite3.connect(place) as database:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = [row for name in names for row in database.execute(f"SELECT * FROM {name}")]
    found = [cell for row in rows for cell in row]
    assert total not in found and total - DEVICES not in found and DEVICES in found
    assert not any(isinstance(cell, bytes) and str(total).encode() in cell and b"{" in cell for cell in found)
    assert not any(f'"count":{total}'.encode() in path.read_bytes() for path in tmp_path.iterdir())
    logged = [getattr(record, "fields", {}) for record in caplog.records]
    assert {fields["count"] for fields in logged if "count" in fields} == {DEVICES}
    assert not any({total, total - DEVICES} & set(map(_number, fields.values())) for fields in logged)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else -1


# What the analyzer takes, says and subtracts


def test_a_shuffler_that_adds_none_or_others_is_noticed() -> None:
    campaign, stated = world().campaign, law_of(added_dummies(world().campaign) or pytest.fail("no dummies"))
    story = Story()
    story.play()
    [(header, body)] = story.simulation.audit._batches.values()
    assert (
        header.dummies == stated and header.people == DEVICES and header.count == len(body) // entry_bytes(campaign)
    )
    assert world().shuffler.signing is not None
    others: list[dict[str, Any]] = [
        {"dummies": None, "people": None},
        {"dummies": (stated[0], stated[1], stated[2] + 1)},
        {"people": header.count},  # a good law, and no dummies
    ]
    for place, change in enumerate(others):
        wrong = replace(header, batch=f"{place:032x}", **change)
        with pytest.raises(Rejected, match=r"adds no dummies, or others|its shuffler adds others, or none"):
            story.simulation.analyzer.receive(wrong.sign(world().shuffler.signing) + body)
    without = ThrowawayCampaign.of(COMMUTE | {"batch": {"minimum": 10}}, DEVICES)
    assert added_dummies(without.campaign) is None
    plain_header = replace(header, people=None, dummies=None)
    assert b"dummies" not in plain_header.sign(world().shuffler.signing)  # what older analyzers read


@pytest.mark.parametrize(
    "change",
    [
        {"people": None},
        {"dummies": None, "count": 21},
        {"people": 10**6},
        {"dummies": (1, 2)},
        {"dummies": (0, 1, 1)},
        {"dummies": (1, 2, 3, 1)},
    ],
)
def test_a_header_states_both_or_neither(change: dict[str, Any]) -> None:
    key = world().shuffler.signing
    assert key is not None
    good = Header("a", "0" * 64, "0" * 32, (1,), 20, "0" * 64, {}, people=10, dummies=(1, 2, 3))
    assert Header.read(good.sign(key), key.verifying_key()) == good
    with pytest.raises(Rejected, match="something else than it should"):
        Header.read(replace(good, **change).sign(key), key.verifying_key())


@pytest.mark.exhaust
def test_estimates_and_promises_say_whose_noise_it_is() -> None:
    story = Story()
    story.play()
    answers = CampaignAnswers(world().campaign, story.simulation.counted)
    [each] = answers.rounds()
    counts = np.bincount(opened(story.simulation), minlength=K) - RULE["reach"]
    np.testing.assert_allclose(
        each.by_group[""].value, counts / DEVICES, atol=1e-3
    )  # epsilon0 = 12 adds next to none
    law = added_dummies(world().campaign)
    assert law is not None and each.n == DEVICES
    np.testing.assert_allclose(each.by_group[""].standard_error, law.variance**0.5 / DEVICES, rtol=1e-2)
    said = answers.guarantee()
    central = said["latest"]["central"]
    assert said["trust"] == "shuffler" == central["trust"] and said["colluding"] == central["colluding"] == 12.0
    assert 0.5 < central["epsilon"] <= 1.0 and central["honest_n"] == 1
    words = " ".join(line["meaning"] for line in said["words"])
    assert "The shuffler adds the noise" in words and "keeps their numbers and its randomness secret" in words
    assert "It rests on the shuffler's dummies" in words
    assert summarize(answers.guarantees()).endswith("if the shuffler adds its dummies and keeps them secret")
    told = explain(world().campaign)
    assert any(line.name == "trust" and "about 13 dummies of each answer" in line.words for line in told.lines)
    assert any("who takes part trusts the shuffler" in warning for warning in told.warnings)


GAUSSIAN = {"epsilon": 1.0, "delta": 1e-3, "variance": "27/2", "reach": 17}


@pytest.mark.exhaust
def test_gaussian_dummies_are_drawn_stated_and_subtracted(rng: Entropy) -> None:
    made = ThrowawayCampaign.of(tables(rounds=1, dummies=GAUSSIAN), DEVICES)
    law = added_dummies(made.campaign)
    assert isinstance(law, GaussianDummies) and law_of(law) == (27, 2, 17, 2)
    drawn = [BatchDummies.draw(made.campaign, 1, 0, rng) for _ in range(1000)]
    counts = np.concatenate([np.bincount(one._symbols, minlength=K) for one in drawn])
    expect_law(np.bincount(counts, minlength=2 * law.reach + 1), law.noise.masses)
    found = simulate(made, faults=FaultRates(loss=0.0, duplicate=0.0, delay=0.0, crash=0.0), seed=5)
    assert found.sound and [result.n for result in found.results] == [DEVICES]
    assert (np.abs(found.results[0].value - found.results[0].truth) * DEVICES <= law.reach + 1.5).all()
    header = Header("a", "0" * 64, "0" * 32, (1,), 20, "0" * 64, {}, people=10, dummies=law_of(law))
    key = made.shuffler.signing
    assert key is not None and Header.read(header.sign(key), key.verifying_key()) == header
    promise = batch_guarantee(made.campaign, ReleasedBatch(1, 500, 500, 500)).central
    assert not isinstance(promise, Missing) and 0.5 < promise.epsilon <= 1.0


def test_rounds_compose_and_two_versions_in_a_batch_void_the_promise() -> None:
    campaign = world(3).campaign
    batches = [ReleasedBatch(t, 500, 500, 500) for t in (1, 2, 3)]
    one, three = batch_guarantee(campaign, batches[0]).central, compose_batches(campaign, batches, most=3)
    assert not isinstance(one, Missing) and not isinstance(three, Missing)
    assert one.epsilon is not None and three.epsilon is not None and one.epsilon < three.epsilon < 3.1
    assert three == guarantee_of_rounds(campaign, n=500, rounds=3)
    mixed = [*batches[:2], ReleasedBatch(3, 500, 500, 499)]
    assert isinstance(batch_guarantee(campaign, mixed[2]).central, Missing)
    assert isinstance(compose_batches(campaign, mixed, most=3), Missing)
    tight = ThrowawayCampaign.of(tables(rounds=3, promise={"delta": 1e-3, "trust": "shuffler"}), 1).campaign
    found = compose_batches(tight, batches, most=3)
    assert isinstance(found, Missing) and "no epsilon keeps delta" in found.reason


def expect_refused(campaign: dict[str, Any], message: str) -> None:
    """In one line, when it is written or when the shuffler is to serve it."""
    with pytest.raises(ConfigError, match=message) as refused:
        made = ThrowawayCampaign.of(campaign, 1)
        CampaignRegistry.of([made.campaign], [made.shuffler])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dummies": {**RULE, "reach": 14}}, "asks for 14 dummies .* and this version of dovetail would add 13"),
        ({"dummies": {}}, "go together: give both or neither"),
        ({"promise": {"delta": 1e-3}}, "go together: give both or neither"),
        ({"promise": {"delta": 1e-3, "trust": "nobody"}}, "must be one of local, shuffler, users"),
        ({"promise": {"delta": 1e-3, "trust": "users"}}, '"users" goes with .*"none"'),
        ({"groups": {"names": ["north", "south"]}}, "without public"),
        ({"randomizer": {"name": "hadamard", "k": 4, "epsilon": 2.0}}, "go with the randomizer krr"),
        ({"dummies": {**RULE, "epsilon": 1e-9}}, r"in \[dummies\]: `epsilon` must be"),
        ({"dummies": {**RULE, "epsilon": "one"}}, "`dummies.epsilon` must be"),
        ({"dummies": {**RULE, "more": 1}}, "`dummies.more` is not a key"),
        ({"dummies": {**GAUSSIAN, "variance": "2"}}, r"in \[dummies\]: .* do not keep epsilon 1 with delta 0.001"),
        ({"dummies": {**GAUSSIAN, "reach": 5}}, r"in \[dummies\]: .* do not keep epsilon 1 with delta 0.001"),
        ({"dummies": {**GAUSSIAN, "variance": "54/4"}}, "`dummies.variance` must be a fraction above 0 in lowest"),
        ({"dummies": {**GAUSSIAN, "variance": "a lot"}}, "`dummies.variance` must be a fraction above 0 in lowest"),
        (
            {"randomizer": {"name": "krr", "k": 1 << 20, "epsilon": 2.0}},
            "asks for 13,631,488 dummies in each batch, more than 1,000,000: join answers",
        ),
    ],
)
def test_campaigns_that_no_shuffler_of_this_version_can_serve_are_refused_before_a_round_opens(
    change: dict[str, Any], message: str
) -> None:
    expect_refused(tables(**change), message)


def test_versions_are_not_served_side_by_side_where_dummies_hide_one_of_them() -> None:
    made = world()
    assert made.owner.signing is not None
    body = made.campaign.signed.rpartition(b"\n# signed")[0] + b"\n"
    newer = Campaign.parse(sign(body.replace(b'id = "commute"', b'id = "commute"\nversion = 2'), made.owner.signing))
    with pytest.raises(ConfigError, match="serve version 2 without version 1"):
        CampaignRegistry.of([made.campaign, newer], [made.shuffler])
    assert CampaignRegistry.of([newer], [made.shuffler]).newest["commute"].campaign.version == 2


@pytest.mark.exhaust
@pytest.mark.parametrize(("count", "gaussian"), [(4, False), (12, True)])
def test_the_owner_drafts_such_a_campaign_and_is_told_what_it_takes(
    count: int, gaussian: bool, tmp_path: Path
) -> None:
    held = {role: keys_of(tmp_path, role) for role in ROLES}
    words = ["new", "--id", "commute", "--question", "How?", "--count", str(count), "--manual", "--minimum", "50"]
    words += [word for role, place in held.items() for word in (f"--{role}", str(place))]
    words += ["--http", "http://127.0.0.1:8401", "--out", str(tmp_path / "campaign.toml"), "--dummies", "1"]
    done = CliRunner().invoke(app, [*words, "--categories", "walk,bike,car", "--epsilon", "10"])
    assert done.exit_code == 0, done.output
    made = draft_campaign((tmp_path / "campaign.toml").read_bytes())
    assert made.dummies is not None and made.promise.trust == "shuffler"
    assert (made.dummies.variance is not None) == gaussian
    together = explain(made).together
    assert not isinstance(together, Missing) and together.epsilon is not None and 0.9 < together.epsilon <= 1.0
    with pytest.raises(ParameterError, match="--dummies go with the randomizer krr"):
        CliRunner().invoke(app, [*words, "--lower", "0", "--upper", "1", "--force"], catch_exceptions=False)


def keys_of(folder: Path, role: KeyRole) -> Path:
    """Fresh keys of a role."""
    place = folder / f"{role}.key"
    save_keys(RoleKeys.generate(role), place)
    return place
