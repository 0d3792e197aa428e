"""What somebody says on a command line is what the device does: whom it answers, whom it follows, what it counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collect.device import test_people
from tests.collect.device.made import OWNER, campaign
from tests.collect.device.test_hand_over import LAST, handed

from dovetail_device.files import save_keys
from dovetail_device.session import limit, open_device, spent
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import RoleKeys

NOWHERE = "http://127.0.0.1:1"  # nobody listens: a report that is drawn waits
MANUAL = 'schedule = "manual"\ncount = 5'


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    place = tmp_path / "device.toml"
    save_keys(RoleKeys.generate("device"), place)
    return place


def written(asked: Campaign, folder: Path) -> Path:
    place = folder / f"{asked.digest.hex()}.toml"
    place.write_bytes(asked.signed)
    return place


def test_an_owner_who_is_named_may_ask_although_another_one_was_met_first(tmp_path: Path, keys: Path) -> None:
    first, second = (written(campaign(id=name, owner=who), tmp_path) for name, who in (("a", OWNER), ("b", LAST)))
    assert LAST.signing
    with open_device(first, keys, url=NOWHERE):
        pass
    with pytest.raises(ConfigError, match="owner"), open_device(second, keys, url=NOWHERE):
        pass
    with open_device(second, keys, url=NOWHERE, owner=str(LAST.signing.verifying_key())) as device:
        assert device.campaign.id == "b"


def test_without_hand_over_no_file_of_the_next_owner_is_taken(tmp_path: Path, keys: Path) -> None:
    old = campaign()
    new = written(handed(old, OWNER, LAST), tmp_path)
    with open_device(written(old, tmp_path), keys, url=NOWHERE):
        pass
    with (
        pytest.raises(ConfigError, match="told to follow no hand-over"),
        open_device(new, keys, url=NOWHERE, hand_over=False),
    ):
        pass
    with open_device(new, keys, url=NOWHERE) as device:
        assert LAST.signing and device.campaign.owner == LAST.signing.verifying_key()


def test_answers_that_only_dummies_of_other_people_hide_take_consent(tmp_path: Path, keys: Path) -> None:
    asked = written(test_people.asked(), tmp_path)
    with pytest.raises(ConfigError, match="trust"), open_device(asked, keys, url=NOWHERE):
        pass
    with open_device(asked, keys, url=NOWHERE, trust="users") as device:
        assert device.campaign.id == "colours"


def test_budgets_are_counted_by_the_name_that_was_given_and_limits_are_those_that_were_set(
    tmp_path: Path, keys: Path
) -> None:
    asked = written(campaign(schedule=MANUAL), tmp_path)
    with open_device(asked, keys, url=NOWHERE, question="thermometer") as device:
        assert device.submit("red", 1).state == "waiting"
    assert spent(keys).questions == {"thermometer": 1.0}
    limit(keys, total=3.0)
    found = limit(keys, per_question=2.0).limits
    assert (found.total, found.per_question) == (3.0, 2.0)
