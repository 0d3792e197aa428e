"""What the change of keys tells the analyzer, and what that costs the promise."""

from __future__ import annotations

from tests.collect.analyzer.world import ANALYZER, World, batch, campaign, seal

from dovetail.collect.analyzer.unseal import unseal
from dovetail_protocol.campaign import Campaign


def versions() -> tuple[Campaign, Campaign]:
    return campaign(delta="1e-3"), campaign(version=2, delta="1e-3")


def test_the_analyzer_tells_the_versions_of_a_batch_apart() -> None:
    """The seal of a report binds the digest of its version; which one opens it, only the analyzer can see."""
    assert ANALYZER.opening
    (older, newer), opener = versions(), ANALYZER.opening.opener()
    sealed = [*seal(older, [0, 1, 2], round=1), *seal(newer, [3, 3], round=1)]
    both = unseal([(newer, opener), (older, opener)], sealed, round=1)
    assert both.versions.tolist() == [1, 1, 1, 0, 0]


def test_people_of_one_version_hide_among_themselves_only() -> None:
    older, newer = versions()
    mixed, pure = World((older, newer)), World((newer,))
    few, many = seal(older, [0] * 40, round=1), seal(newer, [1] * 160, round=1)
    mixed.analyzer.receive(batch(newer, [*few, *many]))
    pure.analyzer.receive(batch(newer, many[:40]))
    (found,), (alone,) = mixed.answers.released_batches(), pure.answers.released_batches()
    assert (found.n, found.smallest) == (200, 40)
    assert alone.smallest == 40
    promised = [world.answers.guarantees().weakest for world in (mixed, pure)]
    assert promised[0] and promised[1] and promised[0].central == promised[1].central, "200 in one batch are worth 40"


def test_of_one_version_everybody_hides_among_all() -> None:
    _, newer = versions()
    world = World((newer,))
    world.analyzer.receive(batch(newer, seal(newer, [1] * 60, round=1)))
    assert world.answers.released_batches()[0].smallest == 60
