"""Opening inner envelopes: what is right comes out as it went in, everything else is refused by its kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.collect.analyzer.world import ANALYZER, KRR, LAPLACE, campaign, reports_of, seal

from dovetail.collect.analyzer.unseal import unseal
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import Opener, RoleKeys
from dovetail_protocol.messages import inner_info, plain_bytes

UNARY = 'name = "unary"\nk = 9\nepsilon = 2.0'
HADAMARD = 'name = "hadamard"\nk = 40\nepsilon = 2.0'
HASHING = 'name = "local_hashing"\nk = 40\nepsilon = 2.0'
CLAMPED = 'name = "budget_laplace"\nlower = 1.0\nupper = 2.0\nepsilon = 2.0\nbeta = 0.5\nrho = 0.9\ngrid = 0.125'
GROUPS = '[groups]\nnames = ["north", "south"]'


def opener(keys: RoleKeys = ANALYZER) -> Opener:
    assert keys.opening is not None
    return keys.opening.opener()


def refused(asked: Campaign, sealed: bytes, *, round: int = 1) -> str:
    """The kind that a single bad report is refused as."""
    opened = unseal([(asked, opener())], [sealed], round=round)
    assert opened.places.size == 0
    ((kind, place),) = opened.refused
    assert place == 0
    return kind


def sealed_bytes(asked: Campaign, plain: bytes) -> bytes:
    return asked.analyzer.seal(plain, inner_info(asked, 1))


@pytest.mark.parametrize("randomizer", [KRR, LAPLACE, UNARY, HADAMARD, HASHING, CLAMPED])
def test_every_mechanism_comes_out_as_it_went_in(randomizer: str) -> None:
    asked = campaign(randomizer)
    values = [1.5] * 20 if "lower" in randomizer else [0, 1, 2, 3] * 5
    reports = reports_of(asked, values, randomizer)
    opened = unseal([(asked, opener())], seal(asked, reports, round=1), round=1)
    assert opened.places.tolist() == list(range(20)) and opened.refused == ()
    assert [asked.mechanism.decode(row.tobytes()) for row in opened.encoded] == reports


def test_public_groups_come_out_with_their_reports() -> None:
    asked = campaign(more=GROUPS)
    names = ["south", "north", "south"]
    opened = unseal([(asked, opener())], seal(asked, [0, 1, 2], round=1, groups=names), round=1)
    assert opened.groups.tolist() == [1, 0, 1] and opened.reports.tolist() == [0, 1, 2]


def test_what_is_not_sealed_to_this_analyzer_campaign_and_round_is_refused_as_seal() -> None:
    asked, other = campaign(), campaign(id="other")
    (good,) = seal(asked, [1], round=1)
    (stranger,) = seal(campaign(analyzer=RoleKeys.generate("analyzer")), [1], round=1)
    changed = good[:-1] + bytes([good[-1] ^ 1])
    assert {refused(asked, bad) for bad in (changed, good[:-1], b"", stranger, seal(other, [1], round=1)[0])} == {
        "seal"
    }
    assert refused(asked, good, round=2) == "seal"


def test_plaintexts_of_another_length_are_refused_as_malformed() -> None:
    asked = campaign()
    whole = bytes([1, 0, 0, 2])
    assert len(whole) == plain_bytes(asked)
    assert {refused(asked, sealed_bytes(asked, plain)) for plain in (b"", whole[:-1], whole + b"\0")} == {"malformed"}


def test_other_versions_are_refused_as_version() -> None:
    asked = campaign()
    assert refused(asked, sealed_bytes(asked, bytes([2, 0, 0, 1]))) == "version"
    assert refused(asked, sealed_bytes(asked, bytes([2, 9, 9, 200]))) == "version"


def test_what_no_device_sends_is_refused_as_content() -> None:
    asked, grouped = campaign(), campaign(more=GROUPS)
    assert refused(asked, sealed_bytes(asked, bytes([1, 0, 0, 4]))) == "content"  # k = 4
    assert refused(asked, sealed_bytes(asked, bytes([1, 0, 1, 0]))) == "content"  # there are no groups
    assert refused(grouped, sealed_bytes(grouped, bytes([1, 0, 2, 0]))) == "content"  # there are two
    assert refused(grouped, sealed_bytes(grouped, bytes([1, 1, 0, 0]))) == "content"


def test_bad_reports_do_not_move_the_good_ones() -> None:
    asked = campaign(more=GROUPS)
    good = seal(asked, [3, 2, 1], round=1, groups=["south", "north", "south"])
    bad = [sealed_bytes(asked, bytes(plain)) for plain in ([1, 0, 0, 9], [7, 0, 0, 1], [1, 0, 5, 1])]
    entries = [bad[0], good[0], bad[1], good[1], good[1][:-1], good[2], bad[2]]
    opened = unseal([(asked, opener())], entries, round=1)
    assert opened.places.tolist() == [1, 3, 5]
    assert opened.groups.tolist() == [1, 0, 1] and opened.reports.tolist() == [3, 2, 1]
    assert opened.refused == (("content", 0), ("version", 2), ("seal", 4), ("content", 6))


@given(st.lists(st.binary(min_size=4, max_size=4), max_size=8))
def test_all_at_once_is_the_same_as_one_by_one(plains: list[bytes]) -> None:
    asked = campaign(more=GROUPS)
    sealed = [sealed_bytes(asked, plain) for plain in plains]
    opened = unseal([(asked, opener())], sealed, round=1)
    kept = [place for place, plain in enumerate(plains) if plain[:2] == b"\1\0" and plain[2] < 2 and plain[3] < 4]
    assert opened.places.tolist() == kept
    assert opened.reports.tolist() == [plains[place][3] for place in kept]
    assert {place for _, place in opened.refused} == set(range(len(plains))) - set(kept)


def test_while_keys_change_reports_of_every_version_are_opened() -> None:
    fresh = RoleKeys.generate("analyzer")
    old, new = campaign(), campaign(version=2, analyzer=fresh)
    entries = seal(old, [0, 1], round=3) + seal(new, [2, 3], round=3)
    opened = unseal([(new, opener(fresh)), (old, opener())], entries, round=3)
    assert opened.reports.tolist() == [0, 1, 2, 3]
    assert np.array_equal(unseal([(new, opener(fresh))], entries, round=3).reports, [2, 3])
