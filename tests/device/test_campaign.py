"""The campaign file: signed as a whole, read key by key, refused in one clear line."""

import re
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.device.campaigns import MECHANISMS, SECRETS, campaign, changed, document, keys, toml

from dovetail_device.files import load_campaign
from dovetail_protocol.campaign import MOST_BYTES, Campaign, draft, sign
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import SigningKey

SIGNED = sign(toml(document()), keys().owner)
STRANGER = SigningKey(bytes(32))
MALLOWS = {
    "shuffler": "mallows",
    "alpha": 1.0,
    "public": "slots.csv",
    "public_sha256": "ab" * 32,
    "groups": {"distance": "place"},
}


# --- signature -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SECRETS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_signed_campaign_is_read_as_it_was_written(name: str, suite: str) -> None:
    found, held = campaign(name=name, suite=suite)
    assert found.mechanism.name == name and found.mechanism.epsilon == MECHANISMS[name]["epsilon"]
    assert found.analyzer == held.analyzer.sealing_key() and found.shuffler == held.shuffler.sealing_key()
    assert found.owner == held.owner.verifying_key()
    assert found.schedule.start == datetime(2030, 1, 1, tzinfo=UTC) and found.schedule.count == 24
    assert (found.batch.minimum, found.batch.small, found.batch.late) == (100, "wait", "refuse")
    assert not found.rounds_mix and not found.order_private
    assert Campaign.parse(found.signed, held.owner.verifying_key()) == found


@pytest.mark.exhaust
def test_any_changed_byte_is_refused() -> None:
    owner = keys().owner.verifying_key()
    for place in range(len(SIGNED)):
        for byte in {SIGNED[place] ^ 1, SIGNED[place] ^ 0x20, ord("\n"), ord("#"), 0xFF} - {SIGNED[place]}:
            forged = SIGNED[:place] + bytes([byte]) + SIGNED[place + 1 :]
            for pinned in (None, owner):
                with pytest.raises(ConfigError) as caught:
                    Campaign.parse(forged, pinned)
                assert "\n" not in str(caught.value)


def test_any_missing_or_added_byte_is_refused() -> None:
    for place in range(len(SIGNED)):
        with pytest.raises(ConfigError):
            Campaign.parse(SIGNED[:place])
        with pytest.raises(ConfigError):
            Campaign.parse(SIGNED[:place] + SIGNED[place + 1 :])
    for added in (b"\n", b" ", b"# signed: ", SIGNED):
        with pytest.raises(ConfigError):
            Campaign.parse(SIGNED + added)
        with pytest.raises(ConfigError):
            Campaign.parse(added + SIGNED)


def test_a_campaign_of_another_owner_is_refused_where_the_owner_is_pinned() -> None:
    with pytest.raises(ConfigError, match="not signed by"):
        Campaign.parse(SIGNED, STRANGER.verifying_key())


def test_a_pinned_owner_is_checked_before_anything_is_read() -> None:
    nonsense = b"this is no TOML\n"
    forged = nonsense + SIGNED[SIGNED.rindex(b"# signed: ") :]
    with pytest.raises(ConfigError, match="not signed by"):
        Campaign.parse(forged, STRANGER.verifying_key())


def test_only_the_owner_that_a_campaign_names_can_sign_it() -> None:
    with pytest.raises(ConfigError, match="signing key"):
        sign(toml(document()), STRANGER)


def test_signing_again_replaces_the_signature_and_changes_nothing_else() -> None:
    assert sign(SIGNED, keys().owner) == SIGNED
    assert sign(toml(document()).rstrip(b"\n"), keys().owner) == SIGNED


def test_a_comment_that_looks_like_a_signature_is_kept() -> None:
    body = toml(document()) + b"# signed: by nobody yet\n"
    signed = sign(body, keys().owner)
    assert signed.startswith(body) and Campaign.parse(signed).id == "meters"


def test_an_unsigned_campaign_is_a_draft_that_no_role_takes() -> None:
    with pytest.raises(ConfigError, match="not signed"):
        Campaign.parse(toml(document()))
    assert draft(toml(document())).id == draft(SIGNED).id == "meters"


def test_the_digest_depends_on_every_byte_and_not_on_the_signature() -> None:
    digest = Campaign.parse(SIGNED).digest
    assert draft(toml(document())).digest == digest
    assert draft(toml(document()) + b"\n").digest != digest


def test_a_file_that_is_too_long_is_not_read_at_all() -> None:
    for read in (Campaign.parse, draft):
        with pytest.raises(ConfigError, match="at most 1,048,576 bytes"):
            read(toml(document()) + b"#" * MOST_BYTES)


def test_errors_of_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    with pytest.raises(ConfigError, match="no such campaign file"):
        load_campaign(path)
    path.write_bytes(SIGNED.replace(b"count = 24", b"count = 25"))
    with pytest.raises(ConfigError, match=r"campaign\.toml: .* changed since"):
        load_campaign(path)
    path.write_bytes(SIGNED)
    assert load_campaign(path) == Campaign.parse(SIGNED)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"a = " + b"[" * 5000,
        b"a = " + b"9" * 5000,
        b"a = 1\na = 2\n",
        b"[[keys]]\n",
        b"#" * (MOST_BYTES + 1),
        b'"a\\nb" = 1\n',
    ],
    ids=["empty", "no text", "deep", "long number", "twice", "array of tables", "too large", "odd key"],
)
def test_what_is_no_campaign_is_refused_in_one_line(body: bytes) -> None:
    with pytest.raises(ConfigError) as caught:
        draft(body)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


# --- keys ----------------------------------------------------------------------------------------------------------

MISSING = [
    "schema_version",
    "id",
    "question",
    "randomizer.name",
    "randomizer.k",
    "randomizer.epsilon",
    "rounds.schedule",
    "rounds.start",
    "rounds.period_seconds",
    "rounds.count",
    "batch.minimum",
    "promise.delta",
    "promise.device_budget",
    "keys.owner",
    "keys.analyzer",
    "keys.shuffler",
    "keys.shuffler_signing",
]
WRONG: list[tuple[str, Any, str]] = [
    ("schema_version", 2, "schema_version"),
    ("schema_version", True, "schema_version"),
    ("id", "", "`id`"),
    ("id", "a b", "`id`"),
    ("id", "x" * 65, "`id`"),
    ("id", "métro", "`id`"),
    ("version", 0, "`version`"),
    ("question", " ", "`question`"),
    ("question", 7, "`question`"),
    ("randomizer.name", "gauss", "randomizer"),
    ("randomizer.k", 1, "`k`"),
    ("randomizer.k", "4", "`k`"),
    ("randomizer.epsilon", 0.0, "`epsilon`"),
    ("randomizer.epsilon", float("nan"), "`epsilon`"),
    ("randomizer.epsilon", True, "`epsilon`"),
    ("randomizer.epsilom", 1.0, "epsilom"),
    ("randomizer.categories", ["a", "b"], "categories"),
    ("randomizer.categories", ["a", "a", "b", "c"], "twice"),
    ("randomizer.categories", ["a", "", "b", "c"], "list of texts"),
    ("randomizer.categories", "abcd", "list of texts"),
    ("groups.names", ["a", "a"], "twice"),
    ("rounds.schedule", "sometimes", "period, manual"),
    ("rounds.schedule", "manual", "start"),
    ("rounds.start", "soon", "`rounds.start`"),
    ("rounds.start", 5, "`rounds.start`"),
    ("rounds.period_seconds", 0.0, "`rounds.period_seconds`"),
    ("rounds.period_seconds", 1e-300, "`rounds.period_seconds`"),
    ("rounds.period_seconds", float("inf"), "`rounds.period_seconds`"),
    ("rounds.count", 0, "`rounds.count`"),
    ("rounds.count", 1 << 40, "`rounds.count`"),
    ("rounds.count", 1.5, "`rounds.count`"),
    ("rounds.grace_seconds", -1.0, "`rounds.grace_seconds`"),
    ("rounds.counts", 3, "did you mean 'count'"),
    ("batch.minimum", 0, "`batch.minimum`"),
    ("batch.small", "keep", "wait, merge, drop"),
    ("batch.late", "never", "refuse, next"),
    ("batch.close_at", 99, "below"),
    ("batch.maximum", 5, "batch.maximum"),
    ("shuffle.shuffler", "none", "needs `public`"),
    ("shuffle.shuffler", 7, "`shuffle.shuffler`"),
    ("shuffle.refine", "blocks", "shuffle.refine"),
    ("shuffle.shufler", "mallows", "did you mean 'shuffler'"),
    ("shuffle.alpha", 1.0, "uniform shuffle takes no"),
    ("shuffle.shuffler", "mallows", "needs `public`"),
    ("shuffle", MALLOWS | {"public_sha256": "AB" * 32}, "64 hexadecimal"),
    ("shuffle", MALLOWS | {"alpha": -1.0}, "`shuffle.alpha`"),
    ("promise.delta", 0.0, "`promise.delta`"),
    ("promise.delta", 1.0, "`promise.delta`"),
    ("promise.assumed_honest", 0, "`promise.assumed_honest`"),
    ("promise.assumed_dishonest", -1, "`promise.assumed_dishonest`"),
    ("promise.authentication", "maybe", "roster, token, none"),
    ("promise.device_budget", 0.5, "does not pay for one report"),
    ("promise.device_budget", float("inf"), "`promise.device_budget`"),
    ("precision", {"beta": 0.1}, "`rho`"),
    ("precision", {"beta": 0.1, "rho": 1.0}, "`precision.rho`"),
    ("precision", {"beta": 0.1, "rho": 0.5, "tau": 1}, "precision.tau"),
    ("keys.suite", "rsa", "x25519, mlkem768-x25519"),
    ("keys.suite", "mlkem768-x25519", "is a key of x25519"),
    ("keys.owner", "ed25519:AAAA", "`keys.owner`"),
    ("keys.analyzer", "x25519:AAAA", "`keys.analyzer`"),
    ("keys.analyzer", str(keys().shuffler.sealing_key()), "one key"),
    ("keys.auditor", "x", "keys.auditor"),
    ("expires", "2029-01-01T00:00:00Z", "before the first round"),
    ("expires", "2031-01-01T00:00:00", "offset"),
    ("expires", "9999-12-31T23:59:59-01:00", "years 2 to 9998"),
    ("endpoints", {"http": ""}, "`endpoints.http`"),
    ("endpoints", {"http": "example.org"}, "`endpoints.http` must be http://host:port or https://host:port"),
    ("endpoints", {"http": "http://u:secret-4711@h"}, "without user and query; this one is not"),
    ("endpoints", {"mqtt": "http://h"}, "`endpoints.mqtt` must be mqtt://host:port or mqtts://host:port"),
    ("endpoints", {"coap": "coap://x"}, "endpoints.coap"),
    ("endpoints", {"http": "http://exämple.org"}, "plain ASCII"),
    ("endpoints", {"http": "HTTP://example.org"}, "plain ASCII"),
    ("version", 1 << 53, "9,007,199,254,740,991"),
    ("shuffle", MALLOWS | {"settings": [{"x": -(1 << 60)}]}, "9,007,199,254,740,991"),
    ("batch", 3, r"\[batch\]"),
    ("qestion", "x", "did you mean 'question'"),
]


@pytest.mark.parametrize("path", MISSING)
def test_a_missing_key_is_named_in_one_line(path: str) -> None:
    with pytest.raises(ConfigError, match=f"`{path.rpartition('.')[2]}`") as caught:
        draft(toml(changed(document(), path, ...)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("path", "value", "words"), WRONG, ids=[f"{path}={value}"[:40] for path, value, _ in WRONG])
def test_a_wrong_value_or_unknown_key_is_named_in_one_line(path: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        draft(toml(changed(document(), path, value)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"shuffle": MALLOWS, "batch.small": "merge"}, "releases roster slots"),
        ({"shuffle": MALLOWS, "batch.late": "next"}, "releases roster slots"),
        ({"shuffle": MALLOWS, "promise.authentication": "none"}, "needs a roster"),
        ({"shuffle": MALLOWS, "groups.names": ["a", "b"]}, "uniform shuffle"),
    ],
)
def test_sections_that_disagree_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        campaign(changes)


def test_categories_of_a_number_are_refused() -> None:
    with pytest.raises(ConfigError, match="takes a number"):
        campaign({"randomizer.categories": ["a", "b"]}, name="laplace")


def test_choices_are_read() -> None:
    found, _ = campaign(
        {
            "batch.small": "merge",
            "batch.late": "next",
            "batch.close_at": 100,
            "randomizer.categories": ["a", "b", "c", "d"],
            "groups.names": ["north", "south"],
            "precision": {"beta": 0.1, "rho": 0.9},
            "promise.assumed_honest": 50,
            "promise.assumed_dishonest": 3,
            "promise.authentication": "none",
            "endpoints": {"http": "https://example.org"},
            "expires": "2031-01-01T01:00:00+01:00",
        }
    )
    assert found.rounds_mix and found.batch.close_at == 100
    assert found.categories == ("a", "b", "c", "d") and found.groups == ("north", "south")
    assert found.precision == (0.1, 0.9) and found.endpoints == {"http": "https://example.org"}
    assert found.promise.assumed_honest == 50 and found.promise.assumed_dishonest == 3
    assert found.expires == datetime(2031, 1, 1, tzinfo=UTC)
    assert campaign({"shuffle": MALLOWS})[0].order_private
    told = campaign({"shuffle": MALLOWS | {"shuffler": "of my own", "width": 3, "a": [1.5]}})[0].shuffle
    assert told.shuffler == "of my own" and told.settings == {"a": [1.5], "width": 3}  # others judge them
    manual = campaign({"rounds": {"schedule": "manual", "count": 3}})[0].schedule
    assert manual.start is None and manual.period is None


def test_a_long_campaign_knows_its_rounds() -> None:
    schedule = campaign()[0].schedule
    start = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    assert [schedule.round_at(start + t) for t in (-1e6, -0.1, 0, 3599.9, 3600, 86399, 86400, 1e9)] == [
        *(0, 0, 1, 1, 2, 24, 25, 25),
    ]
    assert schedule.ends(1) == start + 3600


@given(st.integers(1, 24), st.floats(0.0, 0.999))
def test_a_round_runs_until_it_ends(round: int, part: float) -> None:
    schedule = campaign()[0].schedule
    assert schedule.round_at(schedule.ends(round) - 3600.0 * (1.0 - part)) == round
    assert schedule.round_at(schedule.ends(round)) == round + 1


VALUES: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
    st.lists(st.integers(0, 3) | st.sampled_from(["a", "b"]), max_size=4),
    st.just({}),
    st.just({"x": 1}),
    st.sampled_from(["2030-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"]),
)
PLACES = [f"{table}.{key}" for table, found in document().items() if isinstance(found, dict) for key in found]
PLACES += [*document(), "expires", "groups.names", "randomizer.categories", "precision", "endpoints.http", "a.b"]


@given(st.dictionaries(st.sampled_from(PLACES), VALUES, min_size=1, max_size=3), st.sampled_from([*MECHANISMS]))
def test_whatever_stands_in_a_file_it_is_read_or_refused_in_one_line(changes: dict[str, Any], name: str) -> None:
    asked = document(name=name)
    for path, value in changes.items():
        if isinstance(asked.get(path.partition(".")[0], {}), dict):
            asked = changed(asked, path, value)
    try:
        body = toml(asked)
        tomllib.loads(body.decode())
    except tomllib.TOMLDecodeError:
        return
    try:
        draft(body)
    except ConfigError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("name", "key", "such"),
    [("laplace", "grid", "1.5625"), ("window", "grid", "0.000762939453125"), ("window", "window", "60")],
)
def test_what_is_worked_out_where_it_is_left_out_has_to_be_stated(name: str, key: str, such: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"{name} needs the parameter `{key}`, such as {key} = {re.escape(such)}\."
    ):
        campaign({f"randomizer.{key}": ...}, name=name)


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for forged in (data, data + b"\n" + SIGNED[SIGNED.rindex(b"# signed: ") :]):
        with pytest.raises(ConfigError):
            Campaign.parse(forged)
