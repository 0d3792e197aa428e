"""A campaign is explained with the numbers of the theory, and warns where it promises less than it seems."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.device.campaigns import MECHANISMS, campaign
from tests.device.test_campaign import MALLOWS
from tests.tiers import one_in

import dovetail as dt
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.stages import RANDOMIZERS
from dovetail_protocol.keys import SigningKey


def warnings(changes: dict[str, Any], **options: Any) -> str:
    return "; ".join(explain(campaign(changes)[0], **options).warnings)


@pytest.mark.exhaust
def test_the_promise_of_a_batch_is_that_of_its_minimum() -> None:
    found = explain(campaign({"batch.minimum": 5000, "promise.assumed_dishonest": 1000})[0])
    expected = dt.amplify(dt.KRR(k=4, epsilon=1.0), n=5000, delta=1e-6, honest=4000)
    assert isinstance(found.central, CentralDP)
    assert found.central.epsilon == expected.epsilon and found.central.honest_n == 4000


@pytest.mark.exhaust
def test_the_promise_of_all_rounds_counts_what_a_device_may_send() -> None:
    found = explain(campaign({"promise.device_budget": 7.5, "batch.minimum": 1000})[0])
    assert found.reports == 7 and found.all_epsilon == 7.0
    together = dt.compose([dt.account.ShuffledRound.of(dt.KRR(k=4, epsilon=1.0), 1000, times=7)], delta=1e-6)
    assert not isinstance(found.together, Missing) and found.together.epsilon == together.epsilon
    assert "pays for 7 of 24 rounds" in "; ".join(found.warnings)


def test_one_batch_is_counted_as_one() -> None:
    told = {}
    for rounds in (1, 2):
        found = explain(campaign({"batch.minimum": 1000, "promise.device_budget": float(rounds)})[0])
        told[rounds] = next(line.words for line in found.lines if line.name == "all batches")
    assert "for 1 batch of one device" in told[1] and "for 2 batches of one device" in told[2]


@pytest.mark.exhaust
def test_a_budget_that_pays_exactly_pays_for_every_round() -> None:
    found = explain(campaign({"randomizer.epsilon": 0.1, "promise.device_budget": 24 * 0.1})[0])
    assert found.all_epsilon == 24 * 0.1
    short = explain(campaign({"randomizer.epsilon": 0.1, "promise.device_budget": 1.0})[0])
    assert (short.reports, short.all_epsilon) == (10, 1.0)  # as devices count: 0.1 as written, not its double


@pytest.mark.exhaust
def test_people_of_groups_hide_among_their_group_only() -> None:
    alone = explain(campaign({"batch.minimum": 1000})[0]).central
    groups = explain(campaign({"batch.minimum": 1000, "groups.names": ["north", "south"]})[0])
    assert isinstance(alone, CentralDP) and isinstance(groups.central, CentralDP)
    assert groups.central.epsilon > alone.epsilon and groups.central.n == 500
    assert "for groups of one size" in "; ".join(groups.warnings)  # also for machines, which read no words
    crowded = explain(campaign({"batch.minimum": 1, "groups.names": ["north", "south"]})[0]).central
    assert isinstance(crowded, Missing)


def test_alpha_is_said_for_the_groups_that_it_holds_for() -> None:
    refined = MALLOWS | {"shuffler": "rase", "refine": "blocks", "k": 3}
    for shuffle, groups in ((MALLOWS, "inside the public groups"), (refined, "inside 3 refined groups only")):
        (order,) = [line.words for line in explain(campaign({"shuffle": shuffle})[0]).lines if line.name == "order"]
        assert f"alpha 1 {groups}" in order


@pytest.mark.parametrize("changes", [{"promise.authentication": "none"}, {"shuffle": MALLOWS}])
def test_no_central_promise_is_invented(changes: dict[str, Any]) -> None:
    found = explain(campaign(changes)[0])
    assert isinstance(found.central, Missing) and isinstance(found.together, Missing)
    assert sum("nothing beyond single reports" in line.words for line in found.lines) == 2


@pytest.mark.exhaust
@pytest.mark.parametrize("name", one_in(4, MECHANISMS))
def test_every_campaign_is_explained_in_full(name: str) -> None:
    found = explain(campaign(name=name)[0])
    words = {line.name: line.words for line in found.lines}
    assert {"question", "answer", "one report", "all reports", "one batch", "message", "shuffler"} <= words.keys()
    assert RANDOMIZERS[name].label in words["answer"] and f"{found.message_bytes:,} bytes" in words["message"]
    assert all(line.words and "None" not in line.words for line in found.lines)


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("changes", "words"),
    one_in(
        4,
        [
            ({"batch.minimum": 99}, "hides little"),
            ({"randomizer.epsilon": 5.5}, "protects next to nothing"),
            ({"promise.delta": 0.01}, "not below 1/n"),
            ({"promise.authentication": "none"}, "no roster"),
            ({}, "assumed honest"),
            ({}, "never expires"),
            ({"endpoints": {"http": "http://far.example.org"}}, "`endpoints.http` is plain HTTP"),
            ({"endpoints": {"mqtt": "mqtt://far.example.org"}}, "`endpoints.mqtt` is plain MQTT: devices refuse it"),
        ],
    ),
)
def test_a_weak_promise_is_called_one(changes: dict[str, Any], words: str) -> None:
    assert words in warnings(changes)


def test_whoever_can_send_without_end_or_change_what_he_mixes_is_named() -> None:
    owner = str(campaign()[0].owner)
    weak = {"promise.authentication": "none", "keys.shuffler_signing": owner, "batch.minimum": 99}
    found = warnings(weak | {"randomizer.epsilon": 5.1, "promise.device_budget": 10.2})
    for words in (
        "no roster: anybody may send any number",
        "owner and shuffler sign with one key",
        "a batch of 99 hides little",
        "epsilon 5.1 protects next to nothing",
        "pays for 2 of 24 rounds",
    ):
        assert words in found


@pytest.mark.exhaust
def test_each_class_is_told_how_many_rounds_its_own_budget_pays_for() -> None:
    found = warnings({"classes": {"careful": 0.5, "open": 1.0}, "promise.device_budget": 12.0})
    assert "pays for 12 of 24 rounds; then a open device is silent" in found and "careful" not in found


@pytest.mark.exhaust
def test_a_sound_campaign_has_no_warning() -> None:
    sound = {"batch.minimum": 1000, "promise.assumed_dishonest": 10, "expires": "2031-01-01T00:00:00Z"}
    assert warnings(sound) == ""


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("promise", "assumed", "breaking"),
    [
        ({}, "all of them", "1 of them in one dishonest hand (0.55 %)"),
        ({"promise.assumed_dishonest": 30}, "all but at most 30", "31 of them in one dishonest hand (17.31 %)"),
        ({"promise.assumed_honest": 90}, "all but at most 10", "11 of them in one dishonest hand (6.14 %)"),
    ],
)
def test_the_promise_says_whom_it_counts_on_and_what_share_of_a_roster_breaks_it(
    promise: dict[str, Any], assumed: str, breaking: str
) -> None:
    made = campaign({"batch.minimum": 100, **promise})[0]
    devices = [SigningKey(number.to_bytes(32, "big")).verifying_key() for number in range(1, 181)]
    roster = Roster([RosterEntry(device, slot) for slot, device in enumerate(devices)]).without_devices(devices[:1])
    found = explain(made, roster=roster)
    words = {line.name: line.words for line in found.lines}
    for name in ("one batch", "all batches"):
        assert words[name].endswith(f", if {assumed} come from honest people, one each")
    assert words["roster"].startswith(f"179 devices may send. {breaking} break what is promised of batches")
    assert isinstance(found.central, CentralDP) and f"{101 - found.central.honest_n} of them" in words["roster"]
    assert "roster" not in {line.name for line in explain(made).lines}


@pytest.mark.exhaust
def test_a_roster_below_the_minimum_is_noticed() -> None:
    devices = [SigningKey(bytes([number]) * 32).verifying_key() for number in range(100)]
    full = Roster([RosterEntry(device, slot) for slot, device in enumerate(devices)])
    assert "roster" not in warnings({}, roster=full)
    assert "admits 99 devices, below the minimum batch of 100" in warnings(
        {}, roster=full.without_devices(devices[:1])
    )


def test_public_columns_are_checked_against_their_digest(tmp_path: Path) -> None:
    right = MALLOWS | {"public_sha256": sha256(b"slot,place\n").hexdigest()}
    assert "not beside the campaign" in warnings({"shuffle": right}, folder=tmp_path)
    (tmp_path / "slots.csv").write_bytes(b"slot,place\n")
    assert "slots.csv" not in warnings({"shuffle": right}, folder=tmp_path)
    assert "not the file" in warnings({"shuffle": MALLOWS}, folder=tmp_path)


@pytest.mark.exhaust
def test_what_devices_give_by_default_and_that_they_count_themselves_is_said() -> None:
    told = dict(explain(campaign()[0]).lines)["all reports"]
    assert "as far as it remembers: one that is installed anew begins again" in told
    assert "one question gets 5 nats: 5 reports" in told
    assert "5 nats" not in dict(explain(campaign({"promise.device_budget": 5.0})[0]).lines)["all reports"]
