"""A campaign changes hands: the old owner's signed line is followed by who trusted that owner, and no other."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from tests.device.campaigns import bytes_of, document, toml

from dovetail_protocol.campaign import SIGNED, Campaign, sign
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import SigningKey, VerifyingKey, text
from dovetail_protocol.succession import HANDED, HandOver, heir, read_hand_overs

KEYS = [SigningKey(bytes_of(name, 32)) for name in ("owner", "second owner", "third owner", "stranger")]
FIRST, SECOND, THIRD, STRANGER = KEYS
PUBLIC = [key.verifying_key() for key in KEYS]
VECTORS = json.loads((Path(__file__).parent / "vectors" / "hand_over.json").read_text())


def body(owner: SigningKey, *lines: bytes, id: str = "meters", version: int = 2) -> bytes:
    """A campaign file without its signature."""
    asked = {**document(), "id": id, "version": version}
    asked["keys"] = {**asked["keys"], "owner": str(owner.verifying_key())}
    return toml(asked) + b"".join(lines)


def given(old: SigningKey, new: SigningKey, *, id: str = "meters") -> bytes:
    return HandOver.make(id, old, new.verifying_key()).line()


def test_who_trusted_the_first_owner_follows_to_the_last_one() -> None:
    signed = sign(body(THIRD, given(FIRST, SECOND), given(SECOND, THIRD)), THIRD)
    for trusted in (None, *PUBLIC[:3]):
        found = Campaign.parse(signed, trusted)
        assert found.owner == PUBLIC[2] and [each.old for each in found.handed_over] == PUBLIC[:2]
    assert [found.descends_from(key) for key in PUBLIC] == [True, True, True, False]
    with pytest.raises(ConfigError, match="is not signed by"):
        Campaign.parse(signed, PUBLIC[3])


def test_nobody_else_can_take_a_campaign_over() -> None:
    """Every line that FIRST has not signed for this campaign and this key is refused, whoever is trusted."""
    genuine = HandOver.make("meters", FIRST, PUBLIC[1])
    forged = [
        HandOver.make("meters", STRANGER, PUBLIC[1]).line(),  # by somebody else, of whom nobody has heard
        HandOver("meters", PUBLIC[0], PUBLIC[3], genuine.signature).line(),  # to somebody else
        HandOver("other", PUBLIC[0], PUBLIC[1], genuine.signature).line(),  # of another campaign
        HandOver("meters", PUBLIC[0], PUBLIC[1], STRANGER.sign(b"anything")).line(),
        HandOver.make("other", FIRST, PUBLIC[1]).line(),  # genuine, for another campaign
    ]
    for new in (SECOND, STRANGER):
        for line in forged:
            whole = body(new, line)
            cut = whole + SIGNED + text(new.sign(b"dovetail campaign v1\0" + whole)).encode() + b"\n"
            with pytest.raises(ConfigError):
                Campaign.parse(cut, PUBLIC[0])
    assert Campaign.parse(sign(body(SECOND, genuine.line()), SECOND), PUBLIC[0]).owner == PUBLIC[1]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ((given(SECOND, THIRD), given(FIRST, SECOND)), "do not follow"),
        ((given(FIRST, SECOND), given(FIRST, THIRD)), "do not follow"),
        ((given(FIRST, SECOND),), "not the key to which"),
        ((given(FIRST, THIRD, id="other"),), "is of the campaign other"),
        ((HANDED + b"nonsense\n",), "must name campaign"),
        ((HANDED + b"\xff\n",), "must name campaign|not text"),
        ((given(FIRST, THIRD).replace(b"meters", b"metres"),), "is not signed by"),
        (tuple(given(FIRST, SECOND) for _ in range(65)), "at most 64"),
        ((given(FIRST, SECOND), given(SECOND, FIRST), given(FIRST, THIRD)), "never owns it again"),
    ],
)
def test_lines_that_are_wrong_are_refused_in_one_line_and_never_signed(lines: tuple[bytes, ...], words: str) -> None:
    whole = body(THIRD, *lines)
    with pytest.raises(ConfigError, match=words) as found:
        sign(whole, THIRD)
    assert "\n" not in str(found.value)
    with pytest.raises(ConfigError, match=words):
        Campaign.parse(whole + SIGNED + text(THIRD.sign(b"dovetail campaign v1\0" + whole)).encode() + b"\n")


def test_a_campaign_is_never_handed_back_so_that_no_old_line_can_be_sent_again() -> None:
    """Else the second owner, who gave it back, takes it once more with the line that the first one signed before."""
    for chain in ((FIRST, SECOND, FIRST), (FIRST, SECOND, THIRD, FIRST), (FIRST, SECOND, THIRD, SECOND)):
        lines = [given(old, new) for old, new in pairwise(chain)]
        with pytest.raises(ConfigError, match="never owns it again"):
            sign(body(chain[-1], *lines), chain[-1])


def test_a_line_counts_at_the_end_of_the_file_only() -> None:
    inside = given(FIRST, SECOND) + body(SECOND)
    with pytest.raises(ConfigError, match="is not signed by"):
        Campaign.parse(sign(inside, SECOND), PUBLIC[0])
    assert Campaign.parse(sign(inside, SECOND)).handed_over == ()


def test_a_changed_line_changes_the_digest_and_breaks_the_signature() -> None:
    signed = sign(body(SECOND, given(FIRST, SECOND)), SECOND)
    without = signed.replace(given(FIRST, SECOND), b"")
    with pytest.raises(ConfigError, match="changed since its owner signed it"):
        Campaign.parse(without)


def test_a_campaign_is_handed_to_another_key_and_trust_ends_where_no_line_is() -> None:
    with pytest.raises(ConfigError, match="the same one"):
        HandOver.make("meters", FIRST, PUBLIC[0])
    chain = read_hand_overs(given(FIRST, SECOND) + given(SECOND, THIRD))
    assert [heir(key, chain) for key in PUBLIC] == [*PUBLIC[2:3] * 3, PUBLIC[3]]
    assert read_hand_overs(b"") == read_hand_overs(b"a = 1\n") == ()


@pytest.mark.parametrize("entry", VECTORS)
def test_the_vectors_of_hand_overs_are_made_and_read_alike(entry: dict[str, str]) -> None:
    old, new = SigningKey(bytes.fromhex(entry["old_secret"])), VerifyingKey.parse("new", entry["new"])
    made = HandOver.make(entry["campaign"], old, new)
    assert made.signature.hex() == entry["signature"] and made.line().decode() == entry["line"]
    statement = b"dovetail hand-over v1\0" + made.old.public + made.new.public + entry["campaign"].encode()
    assert statement.hex() == entry["statement"] and old.sign(statement).hex() == entry["signature"]
    found = Campaign.parse(entry["file"].encode(), made.old)
    assert found.owner == new and found.digest.hex() == entry["digest"]
    assert HandOver.parse(entry["line"].rstrip("\n").encode()) == made
