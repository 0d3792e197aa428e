"""Classes of people in one campaign: the file, and messages that state a class to the shuffler alone."""

from __future__ import annotations

from typing import Any

import pytest
from tests.device.campaigns import campaign
from tests.device.words import SimulatedBits

from dovetail.core.entropy import simulation
from dovetail_device.ledger import terms_of
from dovetail_protocol import messages as message
from dovetail_protocol.epsilon_classes import EpsilonClass, find_class
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.messages import Rejected

CLASSES = {"classes.standard": 4.0, "classes.careful": 1.0, "randomizer.epsilon": 4.0}
# of the campaign without classes, as versions before them made it
PINNED_DIGEST = "4fd690e9cdd9eb15e033de990beb6ddb732b55bac7f6c430e3618364a0ed371e"
PINNED_TERMS = "3ad3e64413cb54087e47adfcda6fafea3d54003d942e15a49e92b34ac8441990"


def test_classes_stand_from_the_smallest_epsilon_on_and_the_campaign_has_the_largest() -> None:
    found, _ = campaign(CLASSES)
    assert found.classes == (EpsilonClass("careful", 1.0), EpsilonClass("standard", 4.0))
    assert [found.of_class(place).charged for place in (0, 1)] == [1.0, 4.0] and found.charged == 4.0
    assert [found.of_class(place).affordable for place in (0, 1)] == [1000, 250]
    assert found.of_class(0).digest == found.digest
    plain, _ = campaign()
    assert plain.classes == () and plain.of_class(0) is plain


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({f"classes.c{n}": 0.1 + 0.01 * n for n in range(15)}, "2 to 16 classes, got 17"),
        ({"randomizer.epsilon": 2.0}, "`randomizer.epsilon` must be the largest of [classes], 4.0, got 2.0"),
        ({"classes.other": 4.0}, "two classes of one epsilon"),
        ({"classes.careful": -1.0}, "`classes.careful` must be a number above 0 and at most 40"),
        ({"classes.careful": "low"}, "`classes.careful` must be a number above 0 and at most 40"),
        ({"classes.standard": 41.0, "randomizer.epsilon": 41.0}, "at most 40"),
        ({'classes."so so"': 3.0}, "a name in [classes] must be 1 to 32 letters"),
        ({"groups.names": ["a", "b"]}, "[classes] go with a roster or tokens"),
        ({"promise.authentication": "none"}, "[classes] go with a roster or tokens"),
        ({"precision.beta": 0.1, "precision.rho": 0.9}, "[classes] go with a roster or tokens"),
        (
            {"promise.trust": "shuffler", "dummies.epsilon": 1.0, "dummies.delta": 1e-6, "dummies.reach": 30},
            "without groups, dummies and precision",
        ),
        (
            {
                "shuffle.shuffler": "mallows",
                "shuffle.public": "slots.csv",
                "shuffle.public_sha256": "0" * 64,
                "shuffle.groups": {"labels": "street"},
            },
            "[classes] go with a roster or tokens",
        ),
    ],
)
def test_what_classes_do_not_cover_is_refused_in_one_line(changes: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ConfigError) as refused:
        campaign({**CLASSES, **changes})
    assert wanted in str(refused.value) and "\n" not in str(refused.value)


def test_one_class_is_none() -> None:
    with pytest.raises(ConfigError, match=r"^\[classes\] must name 2 to 16 classes, got 1\.$"):
        campaign({"classes.only": 1.0})


@pytest.mark.parametrize("name", ["unary", "hadamard", "laplace", "window"])
def test_classes_go_with_the_one_randomizer_whose_reports_look_alike(name: str) -> None:
    with pytest.raises(ConfigError, match=r"^\[classes\] go with the randomizer krr"):
        campaign({"classes.careful": 0.5, "classes.standard": 1.5}, name=name)


@pytest.mark.parametrize("suite", ["x25519", "mlkem768-x25519"])
def test_messages_of_all_classes_are_of_one_length_and_the_shuffler_reads_the_class(suite: str) -> None:
    found, keys = campaign(CLASSES, suite=suite)
    words, lengths = SimulatedBits(simulation(1)), set()
    for place in (0, 1):
        drawn = message.draw(found.of_class(place), 2, words)
        wire = message.seal(found, 1, drawn, keys.device, place=place)
        envelope = message.open_envelope(found, wire, keys.shuffler.opener())
        assert envelope.place == place
        opened = keys.analyzer.opener().open(envelope.inner, message.inner_info(found, 1))
        assert opened == drawn and len(opened) == message.plain_bytes(found)  # and no class in it
        lengths.add(len(wire))
    assert lengths == {message.wire_bytes(found)}
    plain, _ = campaign(suite=suite)
    assert message.wire_bytes(found) == message.wire_bytes(plain) + 1


def test_the_class_is_under_the_signature_of_the_device() -> None:
    found, keys = campaign(CLASSES)
    drawn = message.draw(found.of_class(0), 2, SimulatedBits(simulation(1)))
    wire, info = message.seal(found, 1, drawn, keys.device, place=0), message.outer_info(found, 1)
    head = (
        len(wire) - len(keys.shuffler.sealing_key().seal(b"", info)) - 16 - 32 - 64 - 1 - message.inner_bytes(found)
    )
    outer = keys.shuffler.opener().open(wire[head:], info)
    assert outer is not None and outer[112] == 0
    for place in (1, 7):
        moved = wire[:head] + found.shuffler.seal(outer[:112] + bytes([place]) + outer[113:], info)
        with pytest.raises(Rejected) as refused:
            message.open_envelope(found, moved, keys.shuffler.opener())
        assert refused.value.kind == "signature"


def test_a_class_that_the_campaign_has_not_is_refused_even_if_it_is_signed() -> None:
    found, keys = campaign(CLASSES)
    more, _ = campaign({**CLASSES, "classes.middle": 2.0})
    drawn = message.draw(found.of_class(0), 2, SimulatedBits(simulation(1)))
    object.__setattr__(more, "digest", found.digest)
    wire = message.seal(more, 1, drawn, keys.device, place=2)
    with pytest.raises(Rejected, match="names no class of meters"):
        message.open_envelope(found, wire, keys.shuffler.opener())


@pytest.mark.parametrize(("classes", "place"), [(True, None), (True, 2), (True, -1), (False, 0)])
def test_nothing_is_sealed_without_its_class_or_with_another_one(classes: bool, place: int | None) -> None:
    found, keys = campaign(CLASSES if classes else None)
    drawn = message.draw(found, 2, SimulatedBits(simulation(1)))
    with pytest.raises(Rejected, match="states one of its"):
        message.seal(found, 1, drawn, keys.device, place=place)


def test_a_name_is_found_and_without_one_the_most_careful_class() -> None:
    found, _ = campaign(CLASSES)
    assert find_class("meters", found.classes, None) == 0 == find_class("meters", (), None)
    assert find_class("meters", found.classes, "standard") == 1
    with pytest.raises(ConfigError, match=r"`class` must be one of careful, standard, got 'standart'; did you mean"):
        find_class("meters", found.classes, "standart")
    with pytest.raises(ConfigError, match="has no classes: leave the class out"):
        find_class("meters", (), "careful")


def test_other_classes_are_other_terms_and_none_leave_the_terms_as_they_were() -> None:
    found, _ = campaign(CLASSES)
    other, _ = campaign({**CLASSES, "classes.careful": 0.5})
    plain, _ = campaign({"randomizer.epsilon": 4.0})
    assert len({terms_of(found), terms_of(other), terms_of(plain)}) == 3
    old, _ = campaign()
    assert (old.digest.hex(), terms_of(old).hex()) == (PINNED_DIGEST, PINNED_TERMS)
    assert message.wire_bytes(old) == 253
