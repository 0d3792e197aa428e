"""A large batch in parts: the law of its order, what a crash leaves, and what is sent again."""

import os
import tracemalloc
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from tests.collect.shuffler.test_shuffled_batch import Shelf, closed, found_in, law, public, version
from tests.collect.shuffler.world import BEGIN, World, campaign
from tests.statistics import expect_broken, expect_law, rng_of
from tests.tiers import tiered

from dovetail.collect.batch import (
    IN_PARTS,
    MOST_PARTS,
    PREFIX,
    Header,
    entry_bytes,
    head_bytes,
    read_parts,
    version_of,
)
from dovetail.collect.campaign.terms import fit
from dovetail.collect.http import Refusal
from dovetail.collect.shuffler import batches as batch_in_parts
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.shuffler.shuffler import ShufflerSettings
from dovetail.core.errors import StorageError

TRIALS = 3000
STEPS = {  # how often each is taken for three parts
    "set_state": 1, "begin_batch": 1, "add_part": 3, "finish_batch": 1, "offer": 2, "send_part": 3,
    "mark_delivered": 1,
}  # fmt: skip


class Crash(Exception):
    """Where a test kills the process."""


class PartShelf(Shelf):
    """A shelf whose batches are built in parts, and which forgets them at once."""

    def scan_tags(self, campaign, number, after, most):
        return [tag for _, tag in self.tags(campaign, [number]) if tag > after][:most]

    def outgoing(self):
        return []

    def part_macs(self, batch):
        return {}


def in_parts(size=2, **changes):
    return World(campaign(minimum=5, **changes), settings=ShufflerSettings(part_reports=size))


def orders(n, size, rng):
    """Released orders of the same n reports in parts of `size`, again and again."""
    shelf = PartShelf(RoundKey.derive(bytes(range(32))), [(bytes([i]) * 32, bytes([i])) for i in range(n)])
    three = version(minimum=3)
    for _ in range(TRIALS):
        batch = batch_in_parts.build_in_parts(
            closed(shelf), three, (1,), id="batch", shuffler=None, part_reports=size, rng=rng
        )
        assert version_of(batch.header) == IN_PARTS
        yield tuple(shelf.body)


@pytest.mark.exhaust
def test_every_order_of_a_batch_in_parts_has_the_same_probability():
    found = Counter(orders(4, 2, rng_of("every order of a batch in parts")))
    cells, even = law(4)
    expect_law([found[cell] for cell in cells], even)


@pytest.mark.exhaust
def test_a_shuffle_within_parts_only_is_caught(monkeypatch):
    honest = batch_in_parts.keyed_order

    def broken(secret, tags):
        return np.concatenate([honest(secret, tags[:2]), 2 + honest(secret, tags[2:])])

    monkeypatch.setattr(batch_in_parts, "keyed_order", broken)
    found = Counter(orders(4, 2, rng_of("a shuffle within parts only")))
    cells, even = law(4)
    expect_broken([found[cell] for cell in cells], even)


def test_the_order_belongs_to_the_secret_and_not_to_where_reports_lie():
    tags = np.frombuffer(os.urandom(32 * 500), dtype=np.uint8).reshape(-1, 32)
    moved = np.random.default_rng(1).permutation(500)
    secret, other = bytes(32), bytes([1]) * 32
    order = batch_in_parts.keyed_order(secret, tags)
    assert sorted(order.tolist()) == list(range(500))
    assert (tags[order] == tags[moved][batch_in_parts.keyed_order(secret, tags[moved])]).all()
    assert (order != batch_in_parts.keyed_order(other, tags)).any()


@pytest.mark.exhaust
def test_tags_are_read_page_by_page_and_none_is_lost(monkeypatch):
    world = in_parts()
    world.send(*range(7))
    monkeypatch.setattr(batch_in_parts, "_PAGE", 3)
    world.to_round(2)
    assert len(world.analyzer.only().entries) == len(set(world.analyzer.only().entries)) == 7


@pytest.mark.exhaust
def test_a_batch_goes_in_parts_of_the_size_that_is_asked_for():
    world = in_parts(3)
    world.send(*range(8), value=2)
    world.to_round(2)
    (id,) = world.analyzer.batches
    size = entry_bytes(world.campaign)
    assert [len(world.analyzer.parts[id][n]) // size for n in range(3)] == [3, 3, 2]
    assert world.analyzer.only().header.count == 8 and world.analyzer.only().header.parts == 3
    assert world.analyzer.only().values(world.campaign) == [2] * 8
    assert (world.states()[1], world.link_keys.key("commute", 1)) == ("delivered", None)


@pytest.mark.parametrize("size", [None, 5, 6])
def test_a_small_batch_goes_in_one_piece(size):
    world = in_parts(size)
    world.send(*range(5))
    world.to_round(2)
    assert world.analyzer.only().header.parts is None and world.analyzer.parts == {}


@pytest.mark.parametrize(
    ("step", "nth"),
    tiered(
        [(step, n) for step, times in STEPS.items() for n in range(1, times + 1)],
        first=lambda case: case[1] == STEPS[case[0]],
    ),
)
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_step_of_a_release_in_parts_loses_and_doubles_nothing(step, after, nth, monkeypatch):
    """Killed before or after the n-th time that the step is taken; parts that stood are not built or sent again."""
    world = in_parts()
    world.send(*range(6))
    place = world.analyzer if step in ("offer", "send_part") else world.store
    real, times = getattr(place, step), []

    def dying(*arguments):
        times.append(arguments)
        if len(times) == nth and not after:
            raise Crash
        told = real(*arguments)
        if len(times) == nth:
            raise Crash
        return told

    with monkeypatch.context() as patched, suppress(Crash):
        patched.setattr(place, step, dying)
        world.to_round(2)
        pytest.fail("the step was not reached")
    built = [body for n in range(3) if (body := part_of(world, n)) is not None]
    world.restart()
    world.restart()
    assert world.states()[1] == "delivered"
    batch = world.analyzer.only()
    assert batch.header.count == len(set(batch.entries)) == 6 and batch.header.parts == 3
    assert b"".join(batch.entries).startswith(b"".join(built)), "what stood was kept, byte by byte"
    assert [number for _, number in world.analyzer.put] == [0, 1, 2], "no part was sent twice"
    assert world.link_keys.key("commute", 1) is None


def part_of(world, number):
    """A part of the only batch as it lies in the store."""
    batches = world.store.outgoing()
    with suppress(StorageError):
        return world.store.part(batches[0].id, number) if batches else None
    return None


def half_built(world, monkeypatch, after=2):
    """Stop building after so many parts, as a full disk does."""
    real, left = world.store.add_part, [after]

    def full(*arguments):
        left[0] -= 1
        if left[0] < 0:
            raise StorageError("the disk is full.")
        real(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(world.store, "add_part", full)
        world.to_round(2)
    assert world.states()[1] == "releasing"


@pytest.mark.exhaust
def test_building_goes_on_without_a_restart_and_with_the_size_that_the_parts_have(monkeypatch):
    world = in_parts(2)
    world.send(*range(6))
    half_built(world, monkeypatch)
    kept = [part_of(world, n) for n in range(2)]
    world.settings = ShufflerSettings(part_reports=3)
    world.restart()
    batch = world.analyzer.only()
    assert batch.header.parts == 3 and b"".join(batch.entries[:4]) == b"".join(kept)


@pytest.mark.exhaust
def test_the_secret_of_an_order_lies_sealed_and_only_until_the_batch_is_built(monkeypatch, tmp_path):
    drawn = []
    real = batch_in_parts.keyed_order
    monkeypatch.setattr(batch_in_parts, "keyed_order", lambda s, tags: drawn.append(s) or real(s, tags))
    world = World(campaign(minimum=5), folder=tmp_path, settings=ShufflerSettings(part_reports=2))
    world.send(*range(6))
    half_built(world, monkeypatch)
    (sealed,) = [batch.secret for batch in world.store.outgoing()]
    assert found_in(tmp_path, sealed) and not found_in(tmp_path, drawn[0])
    world.restart()
    assert world.states()[1] == "delivered" and drawn == [drawn[0]] * len(drawn) and len(drawn) > 1
    assert not found_in(tmp_path, sealed) and not found_in(tmp_path, drawn[0])


@pytest.mark.exhaust
def test_a_half_built_batch_whose_key_is_gone_is_taken_back_and_its_round_lost(monkeypatch):
    world = in_parts(2)
    world.send(*range(6))
    half_built(world, monkeypatch)
    key = world.link_keys._keys.pop(("commute", 1))
    world.advance(1.0)
    assert world.states()[1] == "lost" and world.store.outgoing() == []
    world.link_keys._keys["commute", 1] = key
    world.advance(1.0)
    world.advance(1.0)
    assert world.states()[1] == "delivered" and world.analyzer.only().header.count == 6


@pytest.mark.exhaust
def test_a_half_built_batch_whose_secret_does_not_open_is_built_anew(monkeypatch):
    world = in_parts(2)
    world.send(*range(6))
    half_built(world, monkeypatch)
    kept = [part_of(world, n) for n in range(2)]
    real = world.store.outgoing
    with monkeypatch.context() as patched:
        patched.setattr(
            world.store,
            "outgoing",
            lambda: [batch_in_parts.OutgoingBatch(**{**vars(batch), "secret": bytes(60)}) for batch in real()],
        )
        world.advance(1.0)
        assert world.shuffler.faults.unreadable("commute", 1)
    for _ in range(3):
        world.advance(1.0)
    entries = world.analyzer.only().entries
    assert len(set(entries)) == 6 and b"".join(entries[:4]) != b"".join(kept)


@pytest.mark.exhaust
def test_whoever_drops_another_round_leaves_a_half_built_batch_alone(monkeypatch):
    other = campaign(id="ferry", minimum=5)
    world = World(campaign(minimum=5), others=[other], settings=ShufflerSettings(part_reports=2))
    world.send(*range(6))
    half_built(world, monkeypatch)
    kept = [part_of(world, n) for n in range(2)]
    for asked, number in ((other, 1), (world.campaign, 2)):
        word = world.word("drop", number, of=asked)
        with pytest.raises(Refusal, match="only one that is lost"):
            world.shuffler.drop_round(asked.id, number, word, world.clock.now())
    assert [part_of(world, n) for n in range(2)] == kept and kept[1] is not None
    world.advance(1.0)
    assert b"".join(world.analyzer.only().entries[:4]) == b"".join(kept)


@pytest.mark.exhaust
def test_a_batch_that_misses_a_report_is_taken_back_and_built_anew(monkeypatch):
    """As when another replica merges one into the round while its tags are read."""
    world = in_parts(2)
    world.send(*range(6))
    real = world.store.scan_tags
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "scan_tags", lambda *asked: real(*asked)[1:])
        world.to_round(2)
        assert world.states()[1] == "held" and world.store.outgoing() == []
    world.advance(1.0)
    assert len(set(world.analyzer.only().entries)) == 6


def test_an_interrupted_delivery_goes_on_with_the_parts_that_are_missing():
    world = in_parts(2)
    world.send(*range(10))
    world.analyzer.parts_left = 3
    world.to_round(2)
    assert world.states()[1] == "released" and [n for _, n in world.analyzer.put] == [0, 1, 2]
    assert world.link_keys.key("commute", 1) is None, "nobody waits for the analyzer to forget who sent what"
    world.restart()
    assert [n for _, n in world.analyzer.put] == [0, 1, 2], "the analyzer still takes nothing"
    world.analyzer.parts_left = 1 << 30
    world.advance(300.0)
    assert [n for _, n in world.analyzer.put] == [0, 1, 2, 3, 4]
    assert world.states()[1] == "delivered" and len(set(world.analyzer.only().entries)) == 10


@pytest.mark.exhaust
def test_a_delivery_that_gets_on_is_tried_again_soon():
    world = in_parts(1)
    world.send(*range(12))
    world.analyzer.parts_left = 0
    world.to_round(2)
    for _ in range(12):  # to pauses of minutes
        world.advance(300.0)
    world.analyzer.parts_left = 1
    world.advance(300.0)
    assert len(world.analyzer.put) == 1 and world.states()[1] == "released"
    world.analyzer.parts_left = 1 << 30
    world.advance(1.01)
    assert world.states()[1] == "delivered"


@pytest.mark.exhaust
def test_an_order_private_batch_goes_in_parts_in_the_order_of_its_shuffler(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path), settings=ShufflerSettings(part_reports=2))
    for device, value in {5: 2, 0: 1, 3: 1, 4: 2}.items():
        world.send(device, value=value)
    world.to_round(2)
    batch = world.analyzer.only()
    assert (batch.slots(), batch.values(made, slots=True)) == ([0, 3, 4, 5], [1, 1, 2, 2])
    assert batch.header.parts == 2


def test_a_manifest_never_lists_more_parts_than_it_may_and_no_part_weighs_too_much():
    asked = campaign()
    entry = entry_bytes(asked)
    assert batch_in_parts.part_size(asked, 10**6, 5000) == 5000
    assert -(-(10**8) // batch_in_parts.part_size(asked, 10**8, 1)) <= MOST_PARTS
    assert batch_in_parts.part_size(asked, 10**8, 10**7) * entry <= 1 << 26


def test_a_round_of_too_few_reports_is_not_begun_in_parts():
    shelf = PartShelf(RoundKey.derive(bytes(32)), [(bytes([i]) * 32, bytes([i])) for i in range(3)])
    four, found = version(minimum=4), []
    for asked in (four, version(minimum=3)):
        batch = batch_in_parts.build_in_parts(
            closed(shelf), asked, (1,), id="batch", shuffler=None, part_reports=1, rng=rng_of("too few")
        )
        found.append(batch is not None)
    assert found == [False, True]


def test_the_manifest_says_what_the_parts_are():
    world = in_parts(2)
    world.send(*range(5))
    world.analyzer.parts_left = 0
    world.to_round(2)
    (batch,) = world.store.outgoing()
    length = head_bytes(batch.header[:PREFIX], IN_PARTS)
    header = Header.read(batch.header[:length], world.campaign.shuffler_signing)
    assert [part.count for part in read_parts(header, batch.header[length:])] == [2, 2, 1]
    assert (header.count, header.rounds, world.clock.now() > BEGIN) == (5, (1,), True)


@pytest.mark.exhaust
def test_the_memory_of_a_release_in_parts_is_a_part_and_less_than_a_hundred_bytes_a_report():
    n, size = 60_000, 2_000
    inner, key = os.urandom(size), RoundKey.derive(os.urandom(32))
    shelf = PartShelf(key, [(i.to_bytes(32, "big"), inner) for i in range(n)], keep=False)
    shelf.ascending = sorted(shelf.inners)
    shelf.scan_tags = lambda campaign, number, after, most: shelf.ascending if not after else []
    tracemalloc.start()
    try:
        batch_in_parts.build_in_parts(
            closed(shelf), version(minimum=3), (1,), id="batch", shuffler=None, part_reports=1000, rng=rng_of("parts")
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert shelf.largest == 1000 * size
    assert peak < n * 100 + 40 * (1 << 20) < n * size / 2
