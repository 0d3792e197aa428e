"""The law of the released order, the bounded memory of a release, and what is left on disk after it."""

import os
import tracemalloc
from collections import Counter
from hashlib import sha256
from itertools import permutations

import numpy as np
import pytest
from tests.collect.shuffler.world import BEGIN, DEVICES, SHUFFLER, World, campaign, message, roster
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.collect.campaign.terms import fit
from dovetail.collect.shuffler import batches as shuffled_batch
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.shuffler.link_key_store import RoundKey
from dovetail.collect.store.interfaces import RoundRecord
from dovetail.core.errors import ConfigError
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.within_groups import WithinGroups

TRIALS = 3000


class Shelf:
    """Just enough of a store for one release; what is built stays in `body`, or is thrown away."""

    def __init__(self, key, inners, keep=True):
        self.key, self.keep, self.body = key, keep, b""
        self.inners = {key.tag(device): (device, slot, inner) for slot, (device, inner) in enumerate(inners)}

    def rounds(self, campaign):
        return [RoundRecord(campaign, 1, "releasing", len(self.inners), BEGIN)]

    def tags(self, campaign, rounds):
        return [(1, tag) for tag in sorted(self.inners)]

    def fetch(self, campaign, keys):
        return [self.key.seal(shuffled_batch.pack(*self.inners[tag]), tag) for _, tag in keys]

    def begin_batch(self, batch):
        self.body = b""
        return True

    def add_part(self, batch, number, body, mac=b""):
        self.body += body if self.keep else b""
        self.largest = max(len(body), getattr(self, "largest", 0))


def version(**changes):
    made = campaign(**changes)
    return CampaignRegistry.of([made], [SHUFFLER]).newest[made.id]


def closed(shelf):
    return shuffled_batch.ClosedRound(shelf, RoundRecord("commute", 1, "held", len(shelf.inners), BEGIN), shelf.key)


def orders(n, rng, fitted=None, size=1):
    """Released orders of the same n reports, again and again."""
    shelf = Shelf(RoundKey.derive(bytes(range(32))), [(bytes([i]) * 32, bytes([i])) for i in range(n)])
    step = 1 if fitted is None else 5
    for _ in range(TRIALS):
        shuffled_batch.build_batch(closed(shelf), version_of_three, (1,), id="batch", shuffler=fitted, rng=rng)
        yield tuple(shelf.body[step - 1 :: step])


version_of_three = version(minimum=3)


def law(n):
    orders_of_n = list(permutations(range(n)))
    return orders_of_n, np.full(len(orders_of_n), 1 / len(orders_of_n))


@pytest.mark.exhaust
def test_every_order_of_a_batch_has_the_same_probability():
    found = Counter(orders(4, rng_of("every order of a batch")))
    cells, even = law(4)
    expect_law([found[cell] for cell in cells], even)


@pytest.mark.exhaust
def test_a_shuffler_that_does_not_shuffle_is_caught(monkeypatch):
    monkeypatch.setattr(
        shuffled_batch, "uniform_order", lambda n, rng: shuffled_batch.ReleasedOrder(np.arange(n), None)
    )
    found = Counter(orders(4, rng_of("a shuffler that does not shuffle")))
    cells, even = law(4)
    expect_broken([found[cell] for cell in cells], even)


@pytest.mark.exhaust
def test_an_order_private_batch_moves_reports_inside_their_groups_only_and_there_uniformly():
    fitted = WithinGroups(Groups.from_labels(["a", "a", "b", "a"]))
    found = Counter(orders(4, rng_of("an order private batch"), fitted))
    cells = [(*order[:2], 2, order[2]) for order in permutations((0, 1, 3))]
    assert set(found) <= set(cells)
    expect_law([found[cell] for cell in cells], np.full(6, 1 / 6))


def public(folder, text="group\na\na\nb\na\nb\nb\n"):
    (folder / "public.csv").write_text(text)
    return (
        'shuffler = "within_groups"\npublic = "public.csv"\n'
        f'public_sha256 = "{sha256(text.encode()).hexdigest()}"\ngroups = {{ labels = "group" }}'
    )


def test_an_order_private_campaign_releases_the_slots_that_are_present(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    for device, value in {5: 2, 0: 1, 3: 1, 4: 2}.items():  # in no order; devices 1 and 2 are missing
        world.send(device, value=value)
    world.to_round(2)
    batch = world.analyzer.only()
    assert batch.slots() == [0, 3, 4, 5]
    assert batch.values(made, slots=True) == [1, 1, 2, 2]


def test_a_device_without_a_row_in_the_public_table_is_not_taken(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    assert world.send(5, 6) == ["accepted", "unknown_device"]


def test_a_slot_that_two_devices_have_had_counts_once_and_too_few_slots_release_nothing(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    world.send(0, 1, 2)
    world.roster = roster([DEVICES[9], *DEVICES[1:6]])  # against the rules, slot 0 changes hands
    world.send(9)
    world.to_round(2)
    batch = world.analyzer.only()
    assert batch.slots() == [0, 1, 2] and batch.header.dropped == {"same slot": 1}


def test_a_batch_that_duplicates_leave_too_small_for_its_minimum_does_not_leave(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    world.send(0, 1)
    world.roster = roster([DEVICES[9], *DEVICES[1:6]])  # against the rules, slot 0 changes hands
    assert world.send(9) == ["accepted"]
    world.to_round(2)
    assert world.analyzer.batches == {}, "three reports, but two slots to hide among: one fewer than was promised"
    assert world.states()[1] == "held"


def test_a_batch_of_exactly_the_minimum_leaves(tmp_path):
    made = campaign(shuffle=public(tmp_path), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    world.send(0, 1, 2)
    world.to_round(2)
    assert world.analyzer.only().slots() == [0, 1, 2]


NEAR = 'labels = "height", radius = 1.0'


@pytest.mark.parametrize(
    ("shuffler", "groups"),
    [
        ('"rase"', 'labels = "height"'),
        ('"rase"\nrefine = "blocks"\nk = 3\nalpha = 50.0', 'labels = "height"'),
        ('"within_groups"', 'labels = "height"'),
        ('"best"\nalpha = 2.0', NEAR),
        ('"mallows"\nalpha = 2.0', NEAR),
        ('"noisy_sort"\nalpha = 2.0', NEAR),
        ('"planar"\nalpha = 2.0', 'points = ["height", "width"], radius = 1.0'),
    ],
)
def test_order_private_shufflers_by_name_do_with_missing_devices(shuffler, groups, tmp_path):
    rest = public(tmp_path, "height,width\n" + "".join(f"{row % 7},{row % 3}\n" for row in range(30)))
    made = campaign(shuffle=rest.replace('"within_groups"', shuffler).replace('labels = "group"', groups), minimum=3)
    world = World(made, fitted=fit(made, tmp_path))
    world.send(*range(0, 30, 2))
    world.to_round(2)
    assert world.analyzer.only().slots() == list(range(0, 30, 2))


def test_another_public_table_than_the_owner_signed_is_refused(tmp_path):
    made = campaign(shuffle=public(tmp_path))
    (tmp_path / "public.csv").write_text("group\nb\n")
    with pytest.raises(ConfigError, match="SHA-256"):
        fit(made, tmp_path)


def test_an_order_private_shuffler_without_alpha_is_refused(tmp_path):
    made = campaign(shuffle=public(tmp_path).replace("within_groups", "best"))
    with pytest.raises(ConfigError, match=r"the campaign .*: \[shuffle\] shuffler 'best' needs `alpha`"):
        fit(made, tmp_path)


@pytest.mark.exhaust
def test_the_memory_of_a_release_does_not_grow_with_its_reports():
    n, size = 60_000, 2_000
    inner = os.urandom(size)
    key = RoundKey.derive(os.urandom(32))
    shelf = Shelf(key, [(i.to_bytes(32, "big"), inner) for i in range(n)], keep=False)
    tracemalloc.start()
    try:
        shuffled_batch.build_batch(
            closed(shelf), version_of_three, (1,), id="batch", shuffler=None, rng=rng_of("memory")
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (1 << 20) <= shelf.largest < (1 << 20) + size
    assert peak < n * 150 + 40 * (1 << 20) < n * size / 2  # tags, a chunk of reports and a part; not the body


def found_in(folder, needle):
    return [path.name for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()]


def test_after_release_the_disk_holds_no_device_and_no_key_that_could_find_one(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    reports = [message(world.campaign, device) for device in DEVICES[:2]]
    assert world.deliver(reports) == ["accepted", "accepted"]
    keys = list((tmp_path / "vault").glob("*.key"))
    (secret,) = [path.read_bytes() for path in keys]
    tags = [tag for _, tag in world.store.tags("commute", [1])]
    sealed = world.store.fetch("commute", world.store.tags("commute", [1]))
    assert all(found_in(tmp_path, tag) for tag in tags)  # the search finds what is there
    world.to_round(2)
    assert world.states()[1] == "delivered"
    for device in DEVICES[:2]:
        assert found_in(tmp_path, device.verifying_key().public) == []
    for gone in (secret, *tags, *sealed, *reports):
        assert found_in(tmp_path, gone) == []
    kept = {path.name: path.read_text() for path in (tmp_path / "vault").iterdir() if path.name != "commute-2.key"}
    assert kept.keys() == {"vault.id", "commute.erased"} and kept["commute.erased"].split() == ["1;"]


def test_before_release_the_database_alone_names_no_device(tmp_path):
    world = World(campaign(minimum=2), folder=tmp_path)
    world.send(0, 1)
    for device in DEVICES[:2]:
        assert found_in(tmp_path, device.verifying_key().public) == []
