"""Keys: short texts and back, files that only their role reads, secrets that nothing prints."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from dovetail.collect import files
from dovetail_device.files import load_keys, save_keys, secret_line
from dovetail_protocol.errors import ConfigError, OutputError, UnsupportedError
from dovetail_protocol.keys import (
    OVERHEAD,
    SUITES,
    OpeningKey,
    Role,
    RoleKeys,
    SealingKey,
    SigningKey,
    VerifyingKey,
    raw,
    text,
)

ROLES = get_args(Role)


@given(st.binary(max_size=100))
def test_bytes_come_back_from_their_text(data: bytes) -> None:
    assert raw(text(data)) == data


@given(st.text(alphabet="ABab01-_+/= \n\u00e9", max_size=12))
def test_bytes_have_one_text_only(encoded: str) -> None:
    try:
        data = raw(encoded)
    except ValueError:
        return
    assert text(data) == encoded


@pytest.mark.parametrize("suite", SUITES)
def test_what_is_sealed_to_a_key_opens_with_it_and_with_the_same_info_only(suite: str) -> None:
    key, other = OpeningKey.generate(suite), OpeningKey.generate(suite)
    sealed = key.sealing_key().seal(b"report", b"info")
    assert len(sealed) == len(b"report") + OVERHEAD[suite]
    assert key.opener().open(sealed, b"info") == b"report"
    assert key.opener().open(sealed, b"other") is None
    assert other.opener().open(sealed, b"info") is None
    assert key.sealing_key().seal(b"report", b"info") != sealed  # a fresh encapsulation each time


@pytest.mark.parametrize("suite", SUITES)
def test_a_changed_or_shortened_envelope_does_not_open(suite: str) -> None:
    key = OpeningKey.generate(suite)
    opener, sealed = key.opener(), key.sealing_key().seal(b"report", b"info")
    for length in range(len(sealed)):
        assert opener.open(sealed[:length], b"info") is None
    assert opener.open(sealed + b"\0", b"info") is None
    for place in range(len(sealed)):
        # the highest bit of an X25519 key is ignored by the curve, but the KEM hashes the key as it was sent
        for bit in (0x01, 0x80):
            changed = bytearray(sealed)
            changed[place] ^= bit
            assert opener.open(bytes(changed), b"info") is None, place


@pytest.mark.parametrize("suite", SUITES)
def test_public_keys_come_back_from_their_text(suite: str) -> None:
    key = OpeningKey.generate(suite).sealing_key()
    assert SealingKey.parse("key", str(key)) == key
    device = SigningKey.generate().verifying_key()
    assert VerifyingKey.parse("key", str(device)) == device


GOOD = str(OpeningKey("x25519", bytes(range(32))).sealing_key())


@pytest.mark.parametrize(
    "encoded",
    [
        None,
        7,
        "",
        "x25519",
        "x25519:",
        GOOD[:-1],
        GOOD + "A",
        GOOD + "=",
        GOOD.replace("x25519", "X25519"),
        GOOD.replace("x25519", "mlkem768-x25519"),
        "x25519:" + text(bytes(32)),  # a point of small order, whose shared secret everybody knows
        "x25519:" + text(bytes([1]) + bytes(31)),
        "mlkem768-x25519:" + text(b"\xff" * 1216),  # coefficients beyond the modulus
        "ed25519:" + text(bytes(32)),
    ],
)
def test_what_is_no_public_key_is_refused_in_one_line(encoded: object) -> None:
    with pytest.raises(ConfigError, match=r"`keys\.analyzer`") as caught:
        SealingKey.parse("keys.analyzer", encoded)
    assert "\n" not in str(caught.value)


FIELD = 2**255 - 19
SLOPE = -121665 * pow(121666, -1, FIELD)  # d of the curve -x^2 + y^2 = 1 + d x^2 y^2


def eightfold_is_neutral(y: int) -> bool:
    """Whether doubling a point with this y three times gives the neutral element, y = 1 and x = 0.

    With u = x^2 known from y, doubling takes y to (y^2 + u) / (1 - d u y^2), and only even powers of x matter.
    """
    for _ in range(3):
        u = (y * y - 1) * pow(SLOPE * y * y + 1, -1, FIELD)
        y = (y * y + u) * pow(1 - SLOPE * u * y * y, -1, FIELD) % FIELD
    return y == 1


def small_orders() -> list[bytes]:
    """Every spelling of every point whose eightfold is neutral."""
    eighth = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
    y = int.from_bytes(eighth, "little")
    found = [each for each in (0, 1, FIELD - 1, y, FIELD - y) if eightfold_is_neutral(each)]
    assert len(found) == 5, "the five y of the eight points"
    spelled = [each + more for each in found for more in (0, FIELD) if each + more < 2**255]
    return [(each + sign).to_bytes(32, "little") for each in spelled for sign in (0, 2**255)]


@pytest.mark.parametrize("public", small_orders(), ids=bytes.hex)
def test_nothing_verifies_under_a_point_of_small_order(public: bytes) -> None:
    assert not any(VerifyingKey(public).verifies(bytes(64), bytes([n])) for n in range(100))
    assert not any(VerifyingKey(public).verifies(public + bytes(32), bytes([n])) for n in range(100))
    with pytest.raises(ConfigError, match="small order"):
        VerifyingKey.parse("keys.owner", f"ed25519:{text(public)}")


def test_such_points_would_verify_otherwise() -> None:
    neutral = Ed25519PublicKey.from_public_bytes((1).to_bytes(32, "little"))
    neutral.verify((1).to_bytes(32, "little") + bytes(32), b"anything")  # raises if the signature does not hold


def test_a_signature_is_good_for_its_key_and_message_only() -> None:
    key, other = SigningKey(bytes(32)), SigningKey(bytes([1]) * 32)
    signature = key.sign(b"message")
    assert signature == key.sign(b"message") and len(signature) == 64
    assert key.verifying_key().verifies(signature, b"message")
    assert not key.verifying_key().verifies(signature, b"massage")
    assert not other.verifying_key().verifies(signature, b"message")
    for wrong in (b"", signature[:-1], signature + b"\0", bytes(64)):
        assert not key.verifying_key().verifies(wrong, b"message")
    assert not VerifyingKey(b"\xff" * 32).verifies(signature, b"message")


# --- files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("role", ROLES)
def test_the_keys_of_a_role_come_back_from_their_private_file(role: Role, suite: str, tmp_path: Path) -> None:
    made = RoleKeys.generate(role, suite)
    path = tmp_path / "role.key"
    save_keys(made, path)
    assert load_keys(path, role) == made
    assert path.stat().st_mode & 0o777 == 0o600
    for other in set(ROLES) - {role}:
        with pytest.raises(ConfigError, match="must never hold"):
            load_keys(path, other)


def test_every_role_holds_what_it_needs_and_nothing_else() -> None:
    held = {role: RoleKeys.generate(role) for role in ROLES}
    assert {role for role in ROLES if held[role].opening} == {"shuffler", "analyzer", "gateway"}
    assert {role for role in ROLES if held[role].signing} == {"owner", "device", "shuffler", "issuer"}


def test_keys_are_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "owner.key"
    save_keys(RoleKeys.generate("owner"), path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="never overwritten"):
        save_keys(RoleKeys.generate("owner"), path)
    assert path.read_bytes() == before


SECRET = text(bytes(range(32)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "names no role"),
        ('role = "boss"', "names no role"),
        ("role = [1]", "names no role"),
        ("not toml", "cannot be read|can be read"),
        ("a = " + "[" * 5000, "can be read"),
        ('role = "device"', "must hold signing"),
        (f'role = "device"\nsigning = "ed25519:{SECRET[:-1]}"', "must be a key"),
        (f'role = "device"\nsigning = "{SECRET}"', "must be a key"),
        ('role = "device"\nsigning = 3', "must be a key"),
        (f'role = "device"\nsigning = "ed25519:{SECRET}"\nopening = "x25519:{SECRET}"', "nothing else"),
    ],
)
def test_a_bad_key_file_is_refused_in_one_line_that_repeats_no_secret(
    content: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / "device.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=words) as caught:
        load_keys(path, "device")
    message = str(caught.value)
    assert str(path) in message and "\n" not in message and SECRET[:12] not in message


def test_a_missing_key_file_and_one_that_everybody_may_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such key file"):
        load_keys(tmp_path / "none.key", "owner")
    path = tmp_path / "owner.key"
    save_keys(RoleKeys.generate("owner"), path)
    path.chmod(0o604)
    with pytest.raises(ConfigError, match="chmod 600"):
        load_keys(path, "owner")
    path.chmod(0o400)  # narrower is as good
    assert load_keys(path, "owner").role == "owner"
    with pytest.raises(OutputError):
        save_keys(RoleKeys.generate("owner"), tmp_path / "no" / "owner.key")


@pytest.mark.parametrize("load", [load_keys, files.load_keys])
@pytest.mark.parametrize("wider", [1 << bit for bit in range(7)])  # any right of a group or others, or to run it
def test_a_key_file_wider_than_0600_is_refused_with_the_remedy(load: Any, wider: int, tmp_path: Path) -> None:
    path = tmp_path / "owner.key"
    save_keys(RoleKeys.generate("owner"), path)
    path.chmod(0o600 | wider)
    with pytest.raises(
        ConfigError, match=f"has mode 0{0o600 | wider:o}, which is wider than 0600.*chmod 600"
    ) as found:
        load(path, "owner")
    assert str(path) in str(found.value) and "\n" not in str(found.value)


# --- mute secrets --------------------------------------------------------------------------------------------------

SECRET_BYTES = bytes(range(100, 196))
SECRETS: list[Callable[[], Any]] = [
    lambda: OpeningKey("x25519", SECRET_BYTES[:32]),
    lambda: OpeningKey("mlkem768-x25519", SECRET_BYTES),
    lambda: OpeningKey("x25519", SECRET_BYTES[:32]).opener(),
    lambda: SigningKey(SECRET_BYTES[:32]),
    lambda: RoleKeys("shuffler", SigningKey(SECRET_BYTES[:32]), OpeningKey("x25519", SECRET_BYTES[:32])),
]


@pytest.mark.parametrize("make", SECRETS)
def test_no_secret_is_printed(make: Callable[[], Any]) -> None:
    for shown in (repr(make()), str(make()), f"{make()}", f"{[make()]}"):
        for length in (4, 8):
            assert text(SECRET_BYTES[:32])[:length] not in shown
            assert SECRET_BYTES[:length].hex() not in shown
        assert repr(SECRET_BYTES[:4])[2:-1] not in shown


@pytest.mark.parametrize("make", SECRETS)
def test_no_secret_is_pickled_or_copied(make: Callable[[], Any]) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        if attempt is copy.copy and isinstance(make(), RoleKeys):
            continue  # a shallow copy is the same secrets
        with pytest.raises(UnsupportedError, match="not pickled"):
            attempt(make())


def test_generated_keys_differ() -> None:
    assert len({OpeningKey.generate("x25519").secret for _ in range(50)}) == 50
    assert len({SigningKey.generate().secret for _ in range(50)}) == 50


def test_a_secret_line_is_one_line_of_a_private_file(tmp_path: Path) -> None:
    place = tmp_path / "password"
    with pytest.raises(ConfigError, match="password: no file with a password that can be read"):
        secret_line(place, "a password")
    place.write_text(" secret-4711 \n")
    for mode in (0o644, 0o640, 0o660):
        place.chmod(mode)
        with pytest.raises(ConfigError, match="wider than 0600"):
            secret_line(place, "a password")
    place.chmod(0o600)
    assert secret_line(place, "a password") == "secret-4711"
    for wrong in ("", "\n", "secret-4711\nsecret-4712\n"):
        place.write_text(wrong)
        with pytest.raises(ConfigError, match="must hold a password in one line") as caught:
            secret_line(place, "a password")
        assert "4711" not in str(caught.value)


def test_a_missing_key_file_names_the_command_that_its_role_has(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`dovetail-device keys` makes one"):
        load_keys(tmp_path / "none", "device")
