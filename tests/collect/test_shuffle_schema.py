"""The [shuffle] table of a campaign and of `dovetail run` have one schema: what one refuses, the other does."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.device.campaigns import campaign, changed, document, toml
from tests.device.test_campaign import MALLOWS, VALUES

from dovetail.collect.analyzer.campaigns import AnalyzerCampaigns
from dovetail.collect.campaign.terms import draft_campaign, fit, shuffle_section
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.core.errors import ConfigError
from dovetail.core.stages import RANDOMIZERS, SHUFFLERS
from dovetail.job.config import parse_config
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail_device.ledger import terms_of
from dovetail_protocol import mechanism as protocol_mechanism
from dovetail_protocol.campaign import draft
from dovetail_protocol.keys import RoleKeys


def without(table: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key != name}


LABELS = MALLOWS | {"groups": {"labels": "place"}}
RASE = LABELS | {"shuffler": "rase"}
WRONG: list[tuple[dict[str, Any], str]] = [
    (LABELS | {"shuffler": "none"}, r"\[shuffle\] `shuffler` must be one of .*, got 'none'"),
    (LABELS | {"shuffler": "malows"}, "did you mean 'mallows'"),
    (LABELS | {"shuffler": "planar"}, r"'planar' needs groups of `points` with two coordinates"),
    (without(LABELS, "alpha"), "'mallows' needs `alpha`"),
    (without(RASE, "alpha") | {"refine": "blocks", "k": 3}, "'rase' needs `alpha`"),
    (LABELS | {"refine": "blocks", "k": 3}, "`refine` goes with shuffler 'rase'"),
    (RASE | {"refine": "blocks"}, "go together"),
    (RASE | {"k": 3}, "go together"),
    (RASE | {"refine": "thirds", "k": 3}, r"`shuffle\.refine` must be 'blocks' or 'agglomerative', got 'thirds'"),
    (RASE | {"refine": "blocks", "k": 0}, r"`shuffle\.k` must be"),
    (RASE | {"refine": "blocks", "k": "3"}, r"`shuffle\.k` must be"),
    (LABELS | {"groups": {"labelz": "place"}}, r"unknown key `shuffle\.groups\.labelz`; did you mean 'labels'"),
    (LABELS | {"groups": {"distance": "place"}}, r"unknown key `shuffle\.groups\.distance`"),
    (LABELS | {"groups": {"labels": "place", "nearest": 3}}, r"\[shuffle\.groups\] `nearest` goes with `points`"),
    (LABELS | {"alhpa": 1.0}, r"unknown key `shuffle\.alhpa`; did you mean 'alpha'"),
]
IDS = [f"{table['shuffler']}: {words}"[:50] for table, words in WRONG]


def refusal(table: dict[str, Any]) -> str:
    """What a campaign with this [shuffle] table is refused with."""
    with pytest.raises(ConfigError) as caught:
        shuffle_section(campaign({"shuffle": table})[0])
    assert str(caught.value).startswith("the campaign meters: ") and "\n" not in str(caught.value)
    return str(caught.value).removeprefix("the campaign meters: ")


@pytest.mark.parametrize(("table", "words"), WRONG, ids=IDS)
def test_a_wrong_shuffle_table_of_a_campaign_is_refused_in_one_line(table: dict[str, Any], words: str) -> None:
    assert re.search(words, refusal(table))


def test_a_campaign_takes_no_groups_from_a_file_that_the_owner_does_not_sign() -> None:
    friends = {"edges": "friends.csv", "ids": "place"}
    for groups in (friends, {"labels": "place", "also": [friends]}):
        assert "name a file that the owner does not sign" in refusal(LABELS | {"groups": groups})


@pytest.mark.parametrize(("table", "words"), WRONG, ids=IDS)
def test_a_campaign_and_a_run_refuse_the_same_shuffle_table_with_the_same_sentence(
    table: dict[str, Any], words: str
) -> None:
    asked = {key: value for key, value in table.items() if key not in ("public", "public_sha256")}
    run = {
        "schema_version": 1,
        "mode": "rehearsal",
        "data": {"private": "secret", "public": ["place"]},
        "randomize": {"epsilon": 1.0},
        "shuffle": asked,
    }
    with pytest.raises(ConfigError) as caught:
        parse_config(run, name="run")
    assert refusal(table) == str(caught.value).removeprefix("run: ")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (LABELS | {"shuffler": "identity"}, "a campaign must shuffle"),
        (LABELS | {"compare": ["uniform"]}, "`compare` is for rehearsals"),
        (RASE | {"graph": "edges.csv"}, "not both"),
    ],
)
def test_a_campaign_shuffles_once_by_its_public_table(table: dict[str, Any], words: str) -> None:
    assert words in refusal(table)


def test_the_order_of_keys_is_no_term_of_a_campaign() -> None:
    asked = RASE | {"refine": "blocks", "k": 3}
    one, other = (campaign({"shuffle": table})[0] for table in (asked, dict(reversed(asked.items()))))
    assert one.shuffle == other.shuffle and terms_of(one) == terms_of(other)
    assert terms_of(one) != terms_of(campaign({"shuffle": asked | {"k": 4}})[0])


def test_every_shuffler_that_moves_reports_can_be_named() -> None:
    for kind in SHUFFLERS:
        if kind.moves_reports and kind.name != "uniform":
            groups = {"points": ["x", "y"], "radius": 1.0}
            found = shuffle_section(campaign({"shuffle": MALLOWS | {"shuffler": kind.name, "groups": groups}})[0])
            assert found.shuffler == kind.name and found.alpha == 1.0
    assert shuffle_section(campaign()[0]).shuffler == "uniform"


KEYS = st.sampled_from([*MALLOWS, "refine", "k", "compare", "graph", "nonsense"])


@given(st.dictionaries(KEYS, VALUES, max_size=3))
def test_whatever_stands_in_a_shuffle_table_it_is_read_or_refused_in_one_line(changes: dict[str, Any]) -> None:
    try:
        draft_campaign(toml(changed(document(), "shuffle", RASE | changes)))
    except ConfigError as error:
        assert "\n" not in str(error)


def test_a_key_of_two_lines_is_refused_in_one() -> None:
    body = toml(changed(document(), "shuffle", LABELS)).replace(b"[promise]", b'"a\\nb" = 1\n[promise]')
    with pytest.raises(ConfigError) as caught:
        draft_campaign(body)
    assert "\n" not in str(caught.value)


def test_a_batch_of_more_reports_than_can_be_counted_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"^`batch.minimum` must be at most 1,000,000,000,000, got 1e\+308\.$"):
        draft_campaign(toml(changed(document(), "batch", {"minimum": 1e308})))


def test_nobody_works_with_a_wrong_shuffle_table(tmp_path: Path) -> None:
    made, held = campaign({"shuffle": LABELS | {"shuffler": "planar"}})
    shuffler = RoleKeys("shuffler", signing=held.shuffler_signing, opening=held.shuffler)
    analyzer = RoleKeys("analyzer", opening=held.analyzer)
    for use in (
        lambda: CampaignRegistry.of([made], [shuffler]),
        lambda: AnalyzerCampaigns.of([made], [analyzer]),
        lambda: fit(made, tmp_path),
        lambda: draft_campaign(made.signed),
    ):
        with pytest.raises(ConfigError, match=r"the campaign meters: .*'planar' needs groups of `points`"):
            use()


# --- randomizers ---------------------------------------------------------------------------------------------------


def test_a_randomizer_that_no_device_runs_is_refused_in_one_clear_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol_mechanism, "names", lambda: ("laplace", "unary"))
    body = toml(document())
    with pytest.raises(ConfigError, match="randomizer 'krr' has no form for devices, so no campaign can use it"):
        draft_campaign(body)
    with pytest.raises(ConfigError, match="must be one of laplace, unary"):  # the protocol knows no more than that
        draft(body)


def test_more_answers_than_can_be_told_are_refused_before_they_are_listed() -> None:
    body = toml(document() | {"randomizer": {"name": "krr", "k": 1 << 31, "epsilon": 1.0}})
    with pytest.raises(ConfigError, match=r"told one by one, and are 1,048,576 at most, got 2,147,483,648"):
        draft_campaign(body)


def test_every_randomizer_of_devices_is_one_that_the_analyst_knows() -> None:
    assert set(protocol_mechanism.names()) <= {*RANDOMIZERS.names(), *VECTOR_RANDOMIZERS.names()}
