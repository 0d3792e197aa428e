"""Dummies of people in the service: one message of two entries, mixed entry by entry, counted, and promised for."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from hashlib import sha256
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.collect.shuffler.test_batch_dummies import ALL_FAULTS, expect_refused, keys_of
from tests.tiers import tiered
from typer.testing import CliRunner

from dovetail.account.dummies import UserDummiesLaw, user_dummies_for, user_dummies_guarantee
from dovetail.cli.collect import app
from dovetail.collect.analyzer.answers import CampaignAnswers
from dovetail.collect.analyzer.batch_intake import VerifiedBatch, open_batch
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.analyzer.live_page import render
from dovetail.collect.analyzer.sentences import guarantee_sentences, summarize
from dovetail.collect.analyzer.unseal import unseal
from dovetail.collect.batch import Header, entry_bytes
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import (
    ReleasedBatch,
    batch_guarantee,
    campaign_guarantees,
    guarantee_of_rounds,
)
from dovetail.collect.campaign.terms import draft_campaign
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.simulate.deployment import COMMUTE, PERIOD, ThrowawayCampaign, among_people, schedule
from dovetail.collect.simulate.faults import SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation, simulate
from dovetail.core.entropy import simulation
from dovetail.core.errors import ConfigError, ParameterError
from dovetail.core.missing import Missing
from dovetail_device.outbox import Outbox
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.dummies import SentDummies
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import Rejected, inner_bytes, inner_info

K, HONEST, DEVICES = 4, 20, 24
RULE = {"epsilon": 1.0, "delta": 0.05, "rate": user_dummies_for(k=K, epsilon=1.0, delta=0.05, honest=HONEST).rate}
OPEN = {"name": "none", "k": K, "categories": COMMUTE["randomizer"]["categories"]}


def tables(*, rounds: int = 1, **changes: Any) -> dict[str, Any]:
    """A campaign whose people make the noise, at a delta that a few of them can keep."""
    own: dict[str, Any] = {
        "randomizer": OPEN,
        "rounds": schedule(rounds, grace=60.0),
        "batch": {"minimum": HONEST},
        "promise": {"delta": 0.05, "trust": "users", "assumed_honest": HONEST},
        "dummies": RULE,
    }
    return COMMUTE | own | changes


@cache
def world() -> ThrowawayCampaign:
    return ThrowawayCampaign.of(tables(), DEVICES)


class Story:
    """One round of such a campaign, without faults."""

    def __init__(self, asked: ThrowawayCampaign | None = None, *, part_reports: int | None = None) -> None:
        self.world, parts = asked or world(), part_reports
        self.simulation = Simulation(
            self.world, dies=lambda _: False, fate=lambda _: "arrives", rng=simulation(7), part_reports=parts
        )
        self.fleet = SimulatedDevices.of(self.world, self.simulation.dying, SeededChance(1))
        self.fleet.report(1, range(len(self.world.devices)), self.simulation.network, self.simulation.clock)

    def play(self) -> None:
        for _ in range(3):
            self.simulation.pass_time(PERIOD)

    def hand_in(self, body: bytes) -> str:
        """What the analyzer says of this body, which the shuffler has signed as another batch."""
        header, key = self.batch[0], self.world.shuffler.signing
        assert key is not None
        again = replace(header, batch="2" * 32, sha256=sha256(body).hexdigest())
        return self.simulation.analyzer.receive(again.sign(key) + body)

    @property
    def batch(self) -> tuple[Header, bytes]:
        [found] = self.simulation.audit._batches.values()
        return found

    @property
    def answers(self) -> CampaignAnswers:
        return CampaignAnswers(self.world.campaign, self.simulation.counted)


def with_broken(story: Story, many: int) -> bytes:
    """The batch with so many entries that nobody can read."""
    length, body = entry_bytes(story.world.campaign), bytearray(story.batch[1])
    for place in range(many):
        body[(place + 1) * length - 1] ^= 1
    return bytes(body)


def opened(story: Story) -> np.ndarray:
    """The symbols of the batch in its order, 4 for a blank."""
    campaign, length = story.world.campaign, entry_bytes(story.world.campaign)
    assert story.world.analyzer.opening is not None
    opener, info, body = story.world.analyzer.opening.opener(), inner_info(campaign, 1), story.batch[1]
    plains = [opener.open(body[start : start + length], info) for start in range(0, len(body), length)]
    return np.array([campaign.mechanism.decode((plain or b"")[3:]) for plain in plains])


# One message of a device, of two entries


@pytest.mark.parametrize(
    ("small", "late"),
    tiered([(small, late) for small in ("wait", "merge", "drop") for late in ("refuse", "next")], lambda _: False),
)
def test_every_rule_accounts_for_every_entry(small: str, late: str) -> None:
    asked = tables(rounds=2, batch={"minimum": HONEST, "small": small, "late": late})
    found = simulate(ThrowawayCampaign.of(asked, DEVICES), faults=ALL_FAULTS, seed=3)
    assert found.sound and found.verdict.batched >= HONEST
    assert sum(result.n for result in found.results) == found.verdict.batched  # people, not entries


@pytest.mark.exhaust
def test_a_batch_holds_two_entries_of_each_device_at_places_of_their_own() -> None:
    story = Story()
    story.play()
    header, body = story.batch
    assert (header.count, header.people, header.dummies) == (2 * DEVICES, DEVICES, None)
    assert len(body) == 2 * DEVICES * inner_bytes(story.world.campaign)
    entries = story.simulation.audit._entries(body)
    senders = [story.simulation.audit._by_inner[inner].report_id for inner in entries]
    assert len({*entries}) == 2 * DEVICES and {senders.count(one) for one in senders} == {2}
    apart = [len(senders) - 1 - senders[::-1].index(one) - senders.index(one) for one in {*senders}]
    # a shuffler that keeps pairs together would say that an answer is one of two; of a right one five distances hold
    # all pairs with probability below C(47, 5) .2^24 = 3e-11, about
    assert len({*apart}) > 5
    [batch] = story.answers.batches()
    assert (batch.count, batch.n, batch.smallest, batch.rejected) == (DEVICES, DEVICES, DEVICES, {})
    symbols = opened(story)
    assert DEVICES <= (symbols < K).sum() <= 2 * DEVICES and symbols.max() <= K


@pytest.mark.exhaust
def test_a_batch_in_parts_is_cut_between_entries_and_counted_as_one_piece_is() -> None:
    whole, cut = Story(), Story(part_reports=10)
    for story in (whole, cut):
        story.play()
    assert (whole.batch[0].parts, cut.batch[0].parts) == (None, -(-2 * DEVICES // 10))
    assert len({*cut.simulation.audit._entries(cut.batch[1])}) == 2 * DEVICES
    assert DEVICES <= (opened(cut) < K).sum() <= 2 * DEVICES
    assert [(one.count, one.n, one.rejected) for one in cut.answers.batches()] == [(DEVICES, DEVICES, {})]


@pytest.mark.exhaust
@pytest.mark.parametrize(("size", "parts"), [(DEVICES, 2), (2 * DEVICES - 1, 2), (2 * DEVICES, None)])
def test_a_batch_is_cut_by_its_entries_and_not_by_its_devices(size: int, parts: int | None) -> None:
    story = Story(part_reports=size)
    story.play()
    assert story.batch[0].parts == parts


@pytest.mark.exhaust
def test_the_shuffler_takes_one_message_of_a_device_and_no_third_entry() -> None:
    story = Story()
    audit, shuffler = story.simulation.audit, story.simulation.shuffler
    assert shuffler is not None
    now, [wire, *_] = story.simulation.clock.now(), audit.messages
    assert [reply.kind for reply in shuffler.accept([wire, wire], now)] == ["accepted", "accepted"]
    key, campaign = world().devices[0].signing, world().campaign
    assert key is not None
    again = message.seal(campaign, 1, message.draw(campaign, 3, story.fleet.words), key)
    assert [reply.kind for reply in shuffler.accept([again], now)] == ["second_report"]
    entry = inner_bytes(campaign)
    assert [reply.kind for reply in shuffler.accept([wire + bytes(entry), wire[:-entry]], now)] == ["malformed"] * 2
    rounds = story.simulation.store.rounds(campaign.id)
    assert [each.count for each in rounds if each.number == 1] == [DEVICES]


def test_nothing_that_the_shuffler_stores_tells_a_dummy_from_a_blank() -> None:
    story = Story()
    store, campaign = story.simulation.store, world().campaign
    tags = store.tags(campaign.id, [1])
    assert {len(sealed) for sealed in store.fetch(campaign.id, tags)} == {
        len(store.fetch(campaign.id, tags[:1])[0])
    } and len(tags) == DEVICES
    assert {len(wire) for wire in story.simulation.audit.messages} == {message.wire_bytes(campaign)}


# What the analyzer takes, says and subtracts


@pytest.mark.exhaust
def test_people_who_send_no_dummies_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SentDummies, "filled", lambda self, values, words: [*values, self.k])
    crowd = {"promise": {"delta": 0.05, "trust": "users", "assumed_honest": 50}, "batch": {"minimum": 50}}
    story = Story(ThrowawayCampaign.of(tables(**crowd), 50))
    story.play()
    assert story.answers.batches() == [] and story.simulation.audit.count_uncounted(story.simulation.counted) == 1
    with pytest.raises(Rejected, match=r"50 honest people send \d+ messages or more .* got 50: fewer of them follow"):
        story.hand_in(story.batch[1])


@pytest.mark.exhaust
@pytest.mark.parametrize("broken", [1, 3])
def test_broken_entries_do_not_hide_that_nobody_sends_dummies(monkeypatch: pytest.MonkeyPatch, broken: int) -> None:
    monkeypatch.setattr(SentDummies, "filled", lambda self, values, words: [*values, self.k])
    crowd = {"promise": {"delta": 0.05, "trust": "users", "assumed_honest": 50}, "batch": {"minimum": 50}}
    story = Story(ThrowawayCampaign.of(tables(**crowd), 50))
    story.play()
    with pytest.raises(Rejected, match=rf"{50 - broken} honest people send .* fewer of them follow"):
        story.hand_in(with_broken(story, broken))
    assert story.answers.batches() == []


@pytest.mark.exhaust
def test_a_broken_entry_of_people_who_send_dummies_is_set_aside_alone() -> None:
    story = Story()
    story.play()
    body, campaign, keys = with_broken(story, 1), story.world.campaign, story.world.analyzer
    versions = AnalyzerCampaigns.of([campaign], [keys]).versions_of(campaign)
    arrived = VerifiedBatch(story.batch[0], campaign, BytesIO(body))
    found = open_batch(
        arrived, lambda pieces: ((one, unseal(versions, one.sealed, round=1)) for one in pieces), now=0.0
    )
    assert (found.batch.count, found.batch.n, found.batch.rejected) == (DEVICES, DEVICES - 1, {"seal": 1})


@pytest.mark.exhaust
@pytest.mark.parametrize("change", [{"people": None}, {"people": DEVICES - 1}, {"people": 2 * DEVICES}])
def test_a_header_that_states_other_people_is_refused(change: dict[str, Any]) -> None:
    story = Story()
    story.play()
    header, body = story.batch
    assert world().shuffler.signing is not None
    wrong = replace(header, batch="1" * 32, **change)
    with pytest.raises(Rejected, match=r"does not hold what so many people|something else than it should"):
        story.simulation.analyzer.receive(wrong.sign(world().shuffler.signing) + body)


@pytest.mark.exhaust
def test_estimates_subtract_the_dummies_and_leave_blanks_out() -> None:
    story = Story()
    story.play()
    [each] = story.answers.rounds()
    shares, rate = np.bincount(opened(story), minlength=K + 1)[:K] / DEVICES, RULE["rate"] / K
    found = each.by_group[""]
    np.testing.assert_allclose(found.value, shares - rate, atol=1e-12)
    np.testing.assert_allclose(found.standard_error, (rate * (1 - rate) / DEVICES) ** 0.5)
    assert each.n == found.n == DEVICES and found.value.size == K
    assert len(story.answers.frequencies()["groups"][0]["projected"]) == K


@pytest.mark.exhaust
def test_a_promise_names_whom_it_trusts_and_has_no_local_part() -> None:
    story = Story()
    story.play()
    said = json.loads(json.dumps(story.answers.guarantee(), allow_nan=False))
    assert said["trust"] == "users" and {said["colluding"], said["local"]["epsilon"], said["epsilon"]} == {"inf"}
    central, law = said["latest"]["central"], user_dummies_for(k=K, epsilon=1.0, delta=0.05, honest=HONEST)
    wanted = user_dummies_guarantee(law, n=DEVICES, delta=0.05, honest=HONEST)
    assert (central["epsilon"], central["honest_n"], central["n"]) == (wanted.epsilon, HONEST, DEVICES)
    assert 0.9 < central["epsilon"] <= 1.0 and central["all"] < central["epsilon"] and central["colluding"] == "inf"
    words = {line["name"]: line["meaning"] for line in said["words"]}
    assert "only the dummies of other people hide it" in words["One report"]
    assert f"{HONEST} of them assumed honest" in words["Latest batch (round 1)"]
    assert "They read the answer of every device" in words["If shuffler and analyzer collude"]
    assert "rests on the dummies of other people" in words["All batches together"]
    assert "if enough other people send their dummies" in summarize(story.answers.guarantees())
    page = render([story.answers])
    assert "answers as they are among dummies of people" in page and "the dummies of other people hide it" in page
    told = {line.name: line.words for line in explain(world().campaign).lines}
    assert "no promise, epsilon is infinite" in told["one report"] and "not randomized" in told["answer"]
    assert f"if {HONEST} people of a batch follow the protocol" in told["trust"]
    assert told["both together"] == "read every answer of every device"


def test_people_who_drop_out_take_the_promise_with_them() -> None:
    campaign = world().campaign
    full, fewer = (batch_guarantee(campaign, ReleasedBatch(1, DEVICES, n, n)).central for n in (DEVICES, 18))
    assert not isinstance(full, Missing) and not isinstance(fewer, Missing)
    assert full.epsilon <= 1.0 < fewer.epsilon == UserDummiesLaw(K, 18, RULE["rate"]).epsilon(0.05)
    none = batch_guarantee(campaign, ReleasedBatch(1, DEVICES, 0, 0)).central
    assert isinstance(none, Missing) and "only the dummies of honest people" in none.reason
    mixed = batch_guarantee(campaign, ReleasedBatch(1, DEVICES, DEVICES, DEVICES - 1)).central
    assert isinstance(mixed, Missing) and "two versions" in mixed.reason


@pytest.mark.exhaust
def test_rounds_compose_from_the_weakest() -> None:
    campaign = ThrowawayCampaign.of(tables(rounds=3, batch={"minimum": 200}), 1).campaign
    batches = [ReleasedBatch(t, n, n, n) for t, n in ((1, 300), (2, 200), (3, 250))]
    found = campaign_guarantees(campaign, batches)
    assert (found.local.epsilon, found.all_local, found.most_reports) == (inf, inf, 3)
    both = found.composed
    assert not isinstance(both, Missing) and getattr(both, "trust", "") == "users"
    law = UserDummiesLaw(K, HONEST, RULE["rate"])
    assert both.epsilon == pytest.approx(3 * law.epsilon(0.05 / 3), rel=1e-9) and both.delta == 0.05
    assert any("counts the promises of batches" in line.meaning for line in guarantee_sentences(campaign, found))


@pytest.mark.exhaust
def test_many_rounds_are_promised_the_smaller_of_both_theorems() -> None:
    campaign, rounds, delta = ThrowawayCampaign.of(tables(), 1).campaign, 400, 0.05

    def kairouz(honest: int) -> float:
        one = UserDummiesLaw(K, honest, RULE["rate"]).epsilon(delta / (2 * rounds))
        return rounds * one * math.tanh(one / 2) + one * math.sqrt(2 * rounds * math.log(2 / delta))

    found = guarantee_of_rounds(campaign, n=3000, rounds=rounds, honest=2000)
    assert not isinstance(found, Missing)
    assert (found.all, found.honest) == pytest.approx((kairouz(3000), kairouz(2000)), rel=1e-9)
    assert kairouz(2000) < rounds * UserDummiesLaw(K, 2000, RULE["rate"]).epsilon(delta / rounds)


@pytest.mark.exhaust
def test_many_rounds_cost_less_than_their_sum() -> None:
    many = ThrowawayCampaign.of(among_people(people=3000, rounds=400) | {"rounds": schedule(400)}, 1).campaign
    year = campaign_guarantees(many, [ReleasedBatch(t, 3000, 3000, 3000) for t in range(1, 401)]).composed
    assert not isinstance(year, Missing) and year.epsilon is not None
    assert 50.0 < year.epsilon < 400.0  # advanced composition


# Which campaigns there are


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dummies": {**RULE, "rate": 0.5}}, r"in \[dummies\]: `rate` must be at least 0\.8"),
        ({"dummies": {**RULE, "rate": 0.9000000001}}, r"`dummies.rate` must be above 0 .* a multiple of 2\^-32"),
        ({"dummies": {**RULE, "rate": 1.5}}, "`dummies.rate` must be above 0 and at most 1"),
        ({"dummies": {**RULE, "delta": 0.03}}, "`honest` must be at least 22 for 4 values .* two messages a person"),
        ({"dummies": {**RULE, "reach": 3}}, "`dummies.reach` is not a key"),
        ({"dummies": {"epsilon": 1.0}}, r"`delta` is missing in \[dummies\]"),
        ({"promise": {"delta": 1e-3, "device_budget": 9.0}}, '"none" goes with dummies'),
        ({"promise": {"delta": 0.05, "trust": "users"}}, "`promise.assumed_honest` is missing"),
        ({"batch": {"minimum": HONEST - 1}}, r"`batch.minimum` = 19 is below `promise.assumed_honest` and .*20 \+ 0"),
        ({"randomizer": {"name": "krr", "k": 4, "epsilon": 2.0}}, '"users" goes with .*"none"'),
        ({"randomizer": {**OPEN, "epsilon": 2.0}}, "`randomizer.epsilon` is not a key"),
        ({"randomizer": {**OPEN, "k": 5}}, "names 4 categories, k is 5"),
        ({"groups": {"names": ["north", "south"]}}, "go with a roster or tokens"),
        ({"promise": {**tables()["promise"], "authentication": "none"}}, "go with a roster or tokens"),
        ({"promise": {**tables()["promise"], "device_budget": 0.5}}, r"does not pay for one report \(1.0\)"),
    ],
)
def test_campaigns_that_people_cannot_make_the_noise_of_are_refused_before_a_round_opens(
    change: dict[str, Any], message: str
) -> None:
    expect_refused(tables(**change), message)


def test_the_analyzer_and_the_draft_check_the_rate_too() -> None:
    weak = ThrowawayCampaign.of(tables(dummies={**RULE, "rate": 0.5}), 1)
    for check in (
        lambda: AnalyzerCampaigns.of([weak.campaign], [weak.analyzer]),
        lambda: draft_campaign(weak.campaign.signed),
        lambda: explain(weak.campaign),
    ):
        with pytest.raises(ConfigError, match=r"so that the dummies of 20 honest people keep epsilon 1, got 0\.5"):
            check()


def test_two_versions_are_not_served_side_by_side() -> None:
    made = world()
    assert made.owner.signing is not None
    body = made.campaign.signed.rpartition(b"\n# signed")[0] + b"\n"
    newer = Campaign.parse(sign(body.replace(b'id = "commute"', b'id = "commute"\nversion = 2'), made.owner.signing))
    with pytest.raises(ConfigError, match="has dummies, which hide reports of one version alone: serve version 2"):
        CampaignRegistry.of([made.campaign, newer], [made.shuffler])


@pytest.mark.exhaust
def test_the_owner_drafts_such_a_campaign_and_is_told_what_it_takes(tmp_path: Path) -> None:
    held = {role: keys_of(tmp_path, role) for role in ("owner", "shuffler", "analyzer")}  # type: ignore[arg-type]
    words = ["new", "--id", "commute", "--question", "How?", "--count", "4", "--manual", "--minimum", "500"]
    words += [word for role, place in held.items() for word in (f"--{role}", str(place))]
    words += ["--out", str(tmp_path / "campaign.toml"), "--trust", "users", "--force"]
    done = CliRunner().invoke(app, [*words, "--categories", "walk,bike,car", "--honest", "400", "--epsilon", "1.5"])
    assert done.exit_code == 0, done.output
    made = draft_campaign((tmp_path / "campaign.toml").read_bytes())
    assert made.sent is not None and (made.charged, made.promise.device_budget, made.entries) == (1.5, 6.0, 2)
    assert b"Nothing is randomized" in made.signed
    found = explain(made)
    assert not isinstance(found.central, Missing) and not isinstance(found.together, Missing)
    assert found.together.epsilon is not None and found.central.epsilon < 1.5 < found.together.epsilon <= 6.0
    checked = CliRunner().invoke(app, ["check", str(tmp_path / "campaign.toml"), "--json"])
    said = json.loads(checked.output)
    assert (said["epsilon"], said["trust"], said["message_bytes"]) == ("inf", "users", message.wire_bytes(made))
    for extra, why in (
        (["--categories", "a,b", "--randomizer", "krr"], "answers of a list are sent as they are"),
        (["--lower", "0", "--upper", "1"], "answers of a list are sent as they are"),
        (["--categories", "a,b", "--dummies", "1"], "--trust shuffler and --dummies go together"),
        (["--categories", "a,b", "--honest", "20"], "`honest` must be at least [0-9]+ for 2 values at epsilon 1"),
    ):
        with pytest.raises(ParameterError, match=why):
            CliRunner().invoke(app, [*words, *extra], catch_exceptions=False)


def test_an_outbox_and_a_roster_hold_such_devices_like_others() -> None:
    key = RoleKeys.generate("device").signing
    assert key is not None
    outbox = Outbox.in_memory(key.verifying_key())
    assert outbox.adopt(world().campaign).sent == world().campaign.sent
    outbox.close()
