"""Batches on their way in: counted once, or refused whole."""

from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.collect.analyzer import world
from tests.collect.analyzer.world import NOON, World, batch, campaign, reports_of, seal

from dovetail.collect.analyzer import analyzer
from dovetail.collect.analyzer import batch_intake as ingest
from dovetail.collect.analyzer.batch_intake import IncomingBatch
from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.batch import Header
from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import Rejected

ASKED = campaign(minimum=3)
REPORTS = [0, 1, 2, 3, 3]
SEALED = seal(ASKED, REPORTS, round=1)
GOOD = batch(ASKED, SEALED)
FUZZED = World((ASKED,))


@pytest.fixture
def one() -> World:
    return World((ASKED,))


def kept(one: World) -> Any:
    """Everything that the analyzer has of its campaign."""
    batches = one.store.batches(ASKED.id)
    return [(each, one.store.tallies(ASKED.id, each.id)) for each in batches]


def refused(one: World, data: bytes) -> str:
    """The kind that a batch is refused as; nothing of it is kept."""
    before = kept(one)
    with pytest.raises(Rejected) as caught:
        one.analyzer.receive(data)
    assert kept(one) == before
    return caught.value.kind


def test_a_batch_is_counted(one: World) -> None:
    assert one.analyzer.receive(GOOD) == "counted"
    ((counted, tallies),) = kept(one)
    assert (counted.n, counted.count, counted.rounds, counted.rejected) == (5, 5, (1,), {})
    assert counted.digest == ASKED.digest.hex() and counted.counted_at == NOON // 60 * 60
    assert [(each.group, each.n, each.counts) for each in tallies] == [("", 5, ((0, 1), (1, 1), (2, 1), (3, 2)))]


def test_a_batch_counts_once_however_often_it_comes(one: World) -> None:
    one.analyzer.receive(GOOD)
    before = kept(one)
    assert [one.analyzer.receive(GOOD), one.analyzer.receive(BytesIO(GOOD))] == ["counted", "counted"]
    assert kept(one) == before
    assert b'batches_counted_total{campaign="commute"} 1.0' in one.analyzer.metrics.text()


@pytest.mark.exhaust
@given(st.lists(st.integers(1, 400), min_size=1))
def test_it_does_not_matter_in_which_pieces_a_batch_comes(sizes: list[int]) -> None:
    spool = BytesIO()
    arrival = IncomingBatch(AnalyzerCampaigns.of((ASKED,), (world.ANALYZER,)), spool)
    rest = GOOD
    for size in sizes:
        arrival.feed(rest[:size])
        rest = rest[size:]
    arrival.feed(rest)
    assert arrival.finish().header.count == 5 and spool.getvalue() == b"".join(SEALED)


def test_a_report_that_is_repeated_counts_once_and_its_copies_are_set_aside(one: World, monkeypatch: Any) -> None:
    monkeypatch.setattr(ingest, "AT_ONCE", 2)  # copies are found across pieces
    one.analyzer.receive(batch(ASKED, [SEALED[3], *SEALED, SEALED[3], SEALED[0]]))
    ((counted, tallies),) = kept(one)
    assert (counted.count, counted.n, counted.smallest, counted.rejected) == (8, 5, 5, {"copy": 3})
    assert tallies[0].counts == ((0, 1), (1, 1), (2, 1), (3, 2))
    assert sorted(one.store.aside(counted.id)) == sorted([("copy", SEALED[3])] * 2 + [("copy", SEALED[0])])


def test_a_bad_report_is_set_aside_and_counted_by_kind(one: World) -> None:
    wrong = seal(ASKED, [1], round=2)[0]
    bad = ASKED.analyzer.seal(bytes([1, 0, 0, 200]), world.inner_info(ASKED, 1))
    one.analyzer.receive(batch(ASKED, [*SEALED[:2], wrong, *SEALED[2:], bad, wrong[:-1] + b"x"]))
    ((counted, tallies),) = kept(one)
    assert (counted.count, counted.n, counted.rejected) == (8, 5, {"seal": 2, "content": 1})
    assert tallies[0].counts == ((0, 1), (1, 1), (2, 1), (3, 2))
    assert b'reports_set_aside_total{campaign="commute",kind="seal"} 2.0' in one.analyzer.metrics.text()


def test_a_batch_of_bad_reports_only_is_counted_and_has_no_estimate(one: World) -> None:
    one.analyzer.receive(batch(ASKED, seal(ASKED, [0, 1, 2], round=9)))
    assert kept(one)[0][0].n == 0 and one.answers.document(one.answers.rounds()[0])["groups"] == []


@pytest.mark.parametrize("place", ["signature", "header", "body"])
def test_a_poisoned_batch_is_refused_whole(one: World, place: str) -> None:
    body = len(GOOD) - sum(map(len, SEALED))
    at = {"signature": body - 1, "header": body - 64 - 5, "body": len(GOOD) - 1}[place]
    other = b"1" if GOOD[at : at + 1] == b"0" else b"0"  # in the header still a digit of the body's SHA-256
    assert refused(one, GOOD[:at] + other + GOOD[at + 1 :]) == "signature"


def test_a_batch_of_another_shuffler_is_refused(one: World) -> None:
    stranger = RoleKeys.generate("shuffler").signing
    assert stranger is not None
    header = Header.peek(GOOD[: len(GOOD) - sum(map(len, SEALED))])
    assert refused(one, header.sign(stranger) + b"".join(SEALED)) == "signature"


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"sha256": "0" * 64}, "signature"),
        ({"count": 4}, "malformed"),
        ({"count": 6}, "malformed"),
        ({"count": 2}, "content"),  # below the campaign's minimum
        ({"count": -1}, "malformed"),
        ({"count": True}, "malformed"),
        ({"count": 5.0}, "malformed"),
        ({"count": 10**12}, "content"),
        ({"rounds": ()}, "malformed"),
        ({"rounds": (0,)}, "malformed"),
        ({"rounds": (1001,)}, "round"),
        ({"rounds": (1, 2)}, "round"),  # rounds do not mix
        ({"rounds": ("1",)}, "malformed"),
        ({"batch": "../../etc"}, "malformed"),
        ({"batch": 7}, "malformed"),
        ({"campaign": "other"}, "malformed"),
        ({"digest": "00" * 32}, "campaign"),
        ({"digest": ["x"]}, "malformed"),
        ({"dropped": {"late": -1}}, "malformed"),
        ({"dropped": []}, "malformed"),
    ],
)
def test_a_signed_header_that_makes_no_sense_is_refused(one: World, changes: dict[str, Any], kind: str) -> None:
    assert refused(one, batch(ASKED, SEALED, **changes)) == kind


CUT = {
    "nothing": b"", "magic": GOOD[:4], "prefix": GOOD[:9], "half a header": GOOD[:50], "cut": GOOD[:-1],
    "more": GOOD + b"x", "noise": b"x" * 100,
}  # fmt: skip


@pytest.mark.parametrize("data", CUT.values(), ids=CUT.keys())
def test_too_little_or_too_much_is_refused(one: World, data: bytes) -> None:
    assert refused(one, data) == "malformed"


def test_another_version_of_the_format_is_refused(one: World) -> None:
    assert refused(one, GOOD[:4] + b"\2" + GOOD[5:]) == "version"


def test_nothing_is_written_before_the_signature_is_verified() -> None:
    spool = BytesIO()
    arrival = IncomingBatch(AnalyzerCampaigns.of((ASKED,), (world.ANALYZER,)), spool)
    at = len(GOOD) - sum(map(len, SEALED)) - 1
    with pytest.raises(Rejected):
        arrival.feed(GOOD[:at] + b"x" + GOOD[at + 1 :])
    assert spool.getvalue() == b""


def test_a_round_is_released_once(one: World) -> None:
    one.analyzer.receive(GOOD)
    assert refused(one, batch(ASKED, seal(ASKED, REPORTS, round=1))) == "round"
    one.analyzer.receive(batch(ASKED, seal(ASKED, REPORTS, round=2), rounds=(2,)))
    assert len(kept(one)) == 2


def test_a_second_batch_of_a_round_is_refused_before_any_report_of_it_is_opened(
    one: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened, its tallies could be compared with those of the first one, by whoever sees the analyzer's memory."""
    one.analyzer.receive(GOOD)
    monkeypatch.setattr(analyzer, "open_batch", lambda *_, **__: pytest.fail("it is opened"))
    assert refused(one, batch(ASKED, seal(ASKED, REPORTS, round=1))) == "round"


def test_merged_rounds_are_one_batch_of_the_last_of_them() -> None:
    mixed = campaign(small="merge")
    one = World((mixed,))
    one.analyzer.receive(batch(mixed, seal(mixed, REPORTS, round=7), rounds=(1, 2)))
    (found,) = one.answers.rounds()
    assert (found.t, found.rounds, found.n) == (2, (1, 2), 5)
    with pytest.raises(Rejected):  # its reports are in the other batch
        one.analyzer.receive(batch(mixed, seal(mixed, [0, 1], round=1), rounds=(1,)))


def test_one_batch_may_hold_reports_of_two_versions() -> None:
    fresh = RoleKeys.generate("analyzer")
    newer = campaign(minimum=3, version=2, analyzer=fresh)
    one = World((ASKED, newer), keys=(world.ANALYZER, fresh))
    one.analyzer.receive(batch(newer, SEALED + seal(newer, [0, 0], round=1)))
    assert kept(one)[0][0].n == 7 and one.answers.campaign.version == 2


def test_a_batch_of_one_campaign_counts_no_report_that_was_sealed_for_another() -> None:
    other = campaign(id="shopping", minimum=3)
    one = World((ASKED, other))
    one.analyzer.receive(batch(ASKED, SEALED + seal(other, [0, 0], round=1)))
    assert (kept(one)[0][0].n, kept(one)[0][0].rejected) == (5, {"seal": 2})


@pytest.mark.parametrize(
    "changed",
    [campaign(minimum=4, version=2), campaign(world.LAPLACE, minimum=3, version=2), campaign(minimum=3, budget=9.0)],
)
def test_versions_that_ask_different_things_are_refused_at_the_start(changed: Campaign) -> None:
    with pytest.raises(ConfigError, match=r"give the changed campaign another id|two files are version 1"):
        AnalyzerCampaigns.of((ASKED, changed), (world.ANALYZER,))


def test_a_campaign_without_its_key_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="another key"):
        AnalyzerCampaigns.of((ASKED,), (RoleKeys.generate("analyzer"),))


def test_order_private_batches_keep_the_released_order_and_nothing_twice() -> None:
    public = f"public = 'homes.csv'\npublic_sha256 = '{'0' * 64}'\n"
    asked = campaign(shuffle=f"{public}shuffler = 'mallows'\nalpha = 1.0\n[shuffle.groups]\nlabels = 'region'")
    one, sealed = World((asked,)), seal(asked, [3, 1, 2], round=1)
    bad = seal(asked, [3], round=2)
    entries = [slot.to_bytes(4) + each for slot, each in zip((4, 7, 9), [*sealed[:2], *bad], strict=True)]
    with pytest.raises(Rejected, match="ascend"):
        one.analyzer.receive(batch(asked, [entries[1], entries[0], entries[2]], id="a" * 32))
    one.analyzer.receive(batch(asked, entries, id="b" * 32))
    assert list(one.store.reports_by_slot("b" * 32)) == [(4, b"\3"), (7, b"\1"), (9, b"")]


def test_what_was_set_aside_is_forgotten_in_time(one: World) -> None:
    one.analyzer.receive(batch(ASKED, [*SEALED, SEALED[0][:-1] + b"x"]))
    one.clock.advance(29 * 86_400)
    assert one.analyzer.purge() == 0
    one.clock.advance(2 * 86_400)
    assert (one.analyzer.purge(), one.analyzer.purge()) == (1, 0)
    assert kept(one)[0][0].rejected == {"seal": 1}  # the count stays


@settings(max_examples=3 * settings().max_examples, deadline=None)  # also of the few in the first tier
@given(st.data())
def test_whatever_comes_is_counted_whole_or_refused_with_nothing_kept(data: st.DataObject) -> None:
    analyzer, counts = FUZZED.analyzer, kept(FUZZED)
    wire = bytearray(GOOD)
    for _ in range(data.draw(st.integers(0, 3))):
        change = data.draw(st.sampled_from(["flip", "cut", "insert", "double"]))
        at = data.draw(st.integers(0, max(0, len(wire) - 1)))
        if change == "flip" and wire:
            wire[at] ^= data.draw(st.integers(1, 255))
        elif change == "cut":
            del wire[at : at + data.draw(st.integers(1, 60))]
        elif change == "insert":
            wire[at:at] = data.draw(st.binary(min_size=1, max_size=20))
        else:
            wire += wire[at:]
    try:
        analyzer.receive(bytes(wire))
    except Rejected:
        assert kept(FUZZED) == counts and bytes(wire) != GOOD
    else:
        assert bytes(wire) == GOOD and kept(FUZZED)[0][0].n == 5


@given(st.binary(max_size=200))
def test_noise_is_refused(noise: bytes) -> None:
    with pytest.raises(Rejected):
        FUZZED.analyzer.receive(b"DVTB\1" + noise)


@pytest.mark.exhaust
@settings(deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda x: st.lists(x, max_size=3), max_leaves=5))
def test_any_json_in_a_signed_header_is_refused_or_counted(value: Any) -> None:
    header = Header.peek(GOOD[: len(GOOD) - sum(map(len, SEALED))])
    assert world.SHUFFLER.signing is not None
    for name in ("campaign", "digest", "batch", "rounds", "count", "sha256", "dropped"):
        changed = replace(header, **{name: value}).sign(world.SHUFFLER.signing)
        with suppress(Rejected):
            assert FUZZED.analyzer.receive(changed + b"".join(SEALED)) == "counted"


def test_the_store_holds_nobodys_name(one: World) -> None:
    reports = reports_of(ASKED, [0, 1, 2, 3], "name")
    one.analyzer.receive(batch(ASKED, seal(ASKED, reports, round=1)))
    ((counted, tallies),) = kept(one)
    fields = {"id", "campaign", "digest", "rounds", "count", "n", "smallest", "counted_at", "rejected", "classes"}
    assert set(vars(counted)) == fields
    assert sorted(vars(tallies[0])) == ["counts", "group", "n"]
