"""The issuer: who gets a token, of which rounds, and that nobody gets two."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.collect.issuer.world import ROUNDS, TokenWorld, pem, signers, with_tokens
from tests.collect.shuffler.world import BEGIN, PERIOD, campaign
from tests.device.issuer import public_of, secret_of

from dovetail.collect.campaign.roster import LiveRoster
from dovetail.collect.campaign.terms import require_same_terms
from dovetail.collect.files import make_round_keys
from dovetail.collect.http import Refusal
from dovetail.collect.issuer.issuer import IssuerRole, of_accounts, of_invitations, of_roster
from dovetail.collect.issuer.signing import OpensslSigner, SigningFault, load_round_keys
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.collect.survey.invitations import Invitations
from dovetail.core.errors import ConfigError, OutputError
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.tokens import PendingToken, TokenKey, apply_for, read_entitlement, voucher


def application(world: TokenWorld, place: int = 0, *, round: int = 1, by: Any = None, pending: Any = None) -> bytes:
    rule = world.asked.tokens
    assert rule is not None
    request = (pending or PendingToken.draw(rule, round)).request(rule, world.asked.id, round)
    return apply_for(world.asked.id, round, request, by or world.keys[place].signing, key=rule.key(round))


def refused(world: TokenWorld, body: bytes, now: float = BEGIN, issuer: Any = None) -> str:
    with pytest.raises(Refusal) as refusal:
        (issuer or world.issuer).issue(body, now)
    return refusal.value.kind


def test_a_person_gets_one_token_a_round_and_the_same_request_the_same_answer() -> None:
    world = TokenWorld()
    asked = application(world)
    assert world.issuer.issue(asked, BEGIN) == world.issuer.issue(asked, BEGIN)
    assert refused(world, application(world)) == "issued"
    world.issuer.issue(application(world, round=2), BEGIN)
    world.issuer.issue(application(world, 1), BEGIN)
    assert world.store.counts() == {("commute", 1): 2, ("commute", 2): 1}
    assert world.issuer.refused() == {("commute", "issued"): 1}


def test_a_row_is_durable_before_a_signature_is_made() -> None:
    """Whatever dies between the two, the person has asked, and asks with the same request again."""
    world = TokenWorld()

    class Dies:
        def sign(self, blinded: bytes) -> bytes:
            raise SigningFault("killed")

    dying = world.opened(signers={key: Dies() for key in signers()})
    asked = application(world)
    with pytest.raises(SigningFault):
        dying.issue(asked, BEGIN)
    assert world.store.counts() == {("commute", 1): 1}
    assert refused(world, application(world)) == "issued" and len(world.issuer.issue(asked, BEGIN)) == 256


def test_only_entitled_people_get_tokens() -> None:
    world = TokenWorld()
    stranger = SigningKey.generate()
    assert refused(world, application(world, by=stranger)) == "unentitled"
    forged = application(world, by=stranger)
    assert world.keys[0].signing
    forged = forged.replace(stranger.verifying_key().public, world.keys[0].signing.verifying_key().public)
    assert refused(world, forged) == "unentitled"
    assert refused(world, application(world, by=b"c" * 16)) == "unentitled", "a code where a roster is asked"
    world.roster = world.roster.without_devices([world.keys[1].signing.verifying_key()])  # type: ignore[union-attr]
    assert refused(world, application(world, 1), issuer=world.opened()) == "unentitled"
    assert world.store.counts() == {}


def test_a_device_of_the_roster_signs_its_request_and_a_revocation_counts_at_once(tmp_path: Path) -> None:
    world = TokenWorld()
    world.roster.save(tmp_path / "roster.csv")
    issuer = world.opened(entitled=of_roster(LiveRoster(tmp_path / "roster.csv")))
    issuer.issue(application(world), BEGIN)
    signed = application(world, 1)
    assert refused(world, signed[:-1] + bytes([signed[-1] ^ 1]), issuer=issuer) == "unentitled"
    revoked = world.keys[1].signing
    assert revoked
    world.roster.without_devices([revoked.verifying_key()]).save(tmp_path / "roster.csv")
    assert refused(world, signed, issuer=issuer) == "unentitled"
    issuer.issue(application(world, 2), BEGIN)


def test_a_code_of_an_invitation_buys_one_token_a_round(tmp_path: Path) -> None:
    codes = Invitations.load(tmp_path).invite(2)
    world = TokenWorld(entitled=of_invitations(tmp_path))
    issuer = world.issuer
    first = read_entitlement(codes[0])
    issuer.issue(application(world, by=first), BEGIN)
    assert refused(world, application(world, by=first), issuer=issuer) == "issued"
    issuer.issue(application(world, by=read_entitlement(codes[1])), BEGIN)
    assert refused(world, application(world, by=b"c" * 16), issuer=issuer) == "unentitled"
    assert refused(world, application(world), issuer=issuer) == "unentitled", "a device where a code is asked"
    later = Invitations.load(tmp_path).invite(1)
    issuer.issue(application(world, by=read_entitlement(later[0])), BEGIN)


def test_the_file_of_invitations_is_read_again_when_it_changes_and_not_for_each_stranger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tens of thousands of codes take a good part of a second to read, and anybody may ask."""
    codes = Invitations.load(tmp_path).invite(1)
    world, read = TokenWorld(entitled=of_invitations(tmp_path)), Invitations.load
    loads: list[Path] = []
    monkeypatch.setattr(Invitations, "load", lambda folder: loads.append(folder) or read(folder))
    for _ in range(3):
        assert refused(world, application(world, by=b"c" * 16)) == "unentitled"
    world.issuer.issue(application(world, by=read_entitlement(codes[0])), BEGIN)
    assert not loads
    later = read(tmp_path).invite(1)
    for round in (1, 2):
        world.issuer.issue(application(world, round=round, by=read_entitlement(later[0])), BEGIN)
    assert loads == [tmp_path]


def test_codes_that_were_read_count_while_their_file_is_broken_or_gone(tmp_path: Path) -> None:
    codes = Invitations.load(tmp_path).invite(3)
    entitled = of_invitations(tmp_path)
    issuer, file = TokenWorld(entitled=entitled).issuer, tmp_path / "invitations.csv"
    good = file.read_text()
    world = TokenWorld(entitled=entitled)
    for code, content in zip(codes, ("no table", None, good), strict=True):
        file.unlink() if content is None else file.write_text(content)
        issuer.issue(application(world, by=read_entitlement(code)), BEGIN)
        assert bool(entitled.fault()) == (content != good)


def test_an_account_of_a_site_buys_one_token_a_round() -> None:
    secret = b"shared with the site"
    world = TokenWorld(entitled=of_accounts(secret))
    issuer = world.issuer
    own = voucher(secret, "commute", b"a" * 32)
    issuer.issue(application(world, by=own), BEGIN)
    assert refused(world, application(world, by=own), issuer=issuer) == "issued"
    for wrong in (voucher(b"another", "commute", b"b" * 32), voucher(secret, "others", b"b" * 32)):
        assert refused(world, application(world, by=wrong), issuer=issuer) == "unentitled"


@pytest.mark.parametrize(
    ("round", "now", "small", "told"),
    [
        (4, 0.0, "drop", ""),
        (5, 0.0, "drop", "too_early"),
        (5, PERIOD, "drop", ""),
        (3, -1e6, "drop", ""),
        (4, -1e6, "drop", "too_early"),
        (1, PERIOD + 59, "drop", ""),
        (1, PERIOD + 60, "drop", "late"),
        (1, PERIOD + 60, "wait", ""),
        (6, 0.0, "wait", "malformed"),
    ],
)
def test_tokens_of_the_next_few_rounds_are_on_sale(round: int, now: float, small: str, told: str) -> None:
    world = TokenWorld(asked=with_tokens(small=small))
    rule = world.asked.tokens
    assert rule is not None and world.keys[0].signing
    known = min(round, ROUNDS)
    request = PendingToken.draw(rule, known).request(rule, "commute", known)
    asked = apply_for("commute", round, request, world.keys[0].signing, key=rule.key(known))
    if told:
        assert refused(world, asked, BEGIN + now) == told
    else:
        assert len(world.issuer.issue(asked, BEGIN + now)) == 256


def test_a_round_whose_key_is_not_here_is_not_on_sale() -> None:
    world = TokenWorld()
    issuer = world.opened(signers=signers(count=2))
    assert issuer.keys_here() == {"commute": [1, 2]}
    issuer.issue(application(world, round=2), BEGIN)
    assert refused(world, application(world, round=3), issuer=issuer) == "too_early"
    assert world.store.counts() == {("commute", 2): 1}, "nobody's token is lost by asking early"


def test_what_is_no_request_for_this_key_is_refused_and_costs_nobody_her_token() -> None:
    world = TokenWorld()
    rule = world.asked.tokens
    assert rule is not None and world.keys[0].signing
    request = PendingToken.draw(rule, 1).request(rule, "commute", 1)
    other = bytes([request[2] ^ 1])
    for wrong in (request[:2] + other + request[3:], request[:3] + b"\xff" * 256):
        assert refused(world, apply_for("commute", 1, wrong, world.keys[0].signing, key=rule.key(1))) == "malformed"
    assert refused(world, b"junk") == "malformed"
    assert refused(world, apply_for("nobody", 1, request, world.keys[0].signing, key=rule.key(1))) == "not_found"
    assert world.store.counts() == {}
    assert set(world.issuer.refused()) == {("commute", "malformed"), ("", "malformed"), ("", "not_found")}


def test_a_key_of_another_campaign_or_round_is_refused() -> None:
    """Else somebody entitled to one would spend its tokens in the other, which the issuer cannot see."""
    world = TokenWorld()
    world.opened()
    with pytest.raises(ConfigError, match=r"is that of round \d of commute"):
        TokenWorld.opened(replaced(world, with_tokens(id="others", first=1)))
    TokenWorld.opened(replaced(world, with_tokens(id="others", first=ROUNDS)), signers=signers(ROUNDS))
    fresh = TokenWorld(asked=with_tokens(first=1))
    with pytest.raises(ConfigError, match=r"is that of round \d of commute"):
        TokenWorld.opened(replaced(fresh, with_tokens(first=2)))


def test_two_campaigns_that_come_at_once_share_no_key() -> None:
    """Each of them alone is in order; together a person would spend two tokens in one round of either."""
    store = open_issuer_store("sqlite://")
    both = [with_tokens(id="one"), with_tokens(id="other")]
    with pytest.raises(ConfigError, match="Make new keys"):
        IssuerRole(both, store=store, signers=signers(), entitled=of_accounts(b"k" * 32), secret=b"s" * 32)
    IssuerRole(both[1:], store=store, signers=signers(), entitled=of_accounts(b"k" * 32), secret=b"s" * 32)


def test_another_key_or_another_kind_of_people_sells_nothing_again() -> None:
    """People have other names in the store under another one: each would get a second token of every round."""
    world = TokenWorld()
    world.issuer.issue(application(world), BEGIN)
    for other in ({"secret": b"t" * 32}, {"entitled": of_accounts(b"k" * 32)}):
        with pytest.raises(ConfigError, match="everybody could ask once more"):
            world.opened(**other)
    assert refused(world, application(world), issuer=world.opened()) == "issued"


def replaced(world: TokenWorld, asked: Any) -> TokenWorld:
    world.asked = asked
    return world


def test_a_campaign_without_tokens_has_no_issuer() -> None:
    world = TokenWorld()
    with pytest.raises(ConfigError, match="asks for no tokens"):
        TokenWorld.opened(replaced(world, campaign()))


def test_versions_share_issuer_and_keys() -> None:
    old = with_tokens()
    require_same_terms(old, with_tokens(version=2, url="https://elsewhere.example.org"))
    with pytest.raises(ConfigError, match="`tokens` differs"):
        require_same_terms(old, with_tokens(version=2, first=1))


def test_the_store_names_a_person_otherwise_in_each_round_and_nobody_in_the_clear(tmp_path: Path) -> None:
    world = TokenWorld(folder=tmp_path)
    for round in (1, 2):
        world.issuer.issue(application(world, round=round), BEGIN)
    world.store.close()
    rows = (tmp_path / "issuer.sqlite").read_bytes()
    assert world.keys[0].signing and world.keys[0].signing.verifying_key().public not in rows
    names = open_issuer_store(f"sqlite:///{tmp_path / 'issuer.sqlite'}")._database.read(
        lambda connection: connection.exec_driver_sql("SELECT who FROM issued").scalars().all()
    )
    assert len(set(names)) == 2


# The program that signs.


def saved(tmp_path: Path, content: bytes, mode: int = 0o600) -> Path:
    path = tmp_path / "round-0001.pem"
    path.write_bytes(content)
    path.chmod(mode)
    return tmp_path


def test_openssl_signs_as_the_definition_has_it(tmp_path: Path) -> None:
    """The RFC's own bytes stand in `tests/device/test_tokens.py`, for the definition."""
    ((key, signer),) = load_round_keys(saved(tmp_path, pem(0))).items()
    blinded = b"\1" * 256
    made = signer.sign(blinded)
    modulus = secret_of(0).public_key().public_numbers().n
    assert key == public_of(secret_of(0)) and pow(int.from_bytes(made), 65537, modulus) == int.from_bytes(blinded)
    for wrong in (b"\xff" * 256, b"\1" * 255, b""):
        with pytest.raises(SigningFault, match="below the modulus"):
            signer.sign(wrong)


def test_a_signature_that_does_not_hold_leaves_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in the exponentiation would tell the secret key: Boneh, DeMillo, Lipton (1997)."""
    saved(tmp_path, pem(0))
    wrong = OpensslSigner(tmp_path / "round-0001.pem", secret_of(1).public_key().public_numbers())
    with pytest.raises(SigningFault, match="does not hold"):
        wrong.sign(b"\1" * 256)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    with pytest.raises(SigningFault, match="made no signature"):
        wrong.sign(b"\1" * 256)


def test_keys_are_made_once_one_for_each_round_and_for_their_owner_only(tmp_path: Path) -> None:
    made = list(make_round_keys(tmp_path / "keys", 2))
    files = sorted((tmp_path / "keys").iterdir())
    assert [file.name for file in files] == ["round-0001.pem", "round-0002.pem"]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert set(load_round_keys(tmp_path / "keys")) == set(made) and len(set(made)) == 2
    assert all(TokenKey.parse("key", str(key)) == key for key in made)
    with pytest.raises(OutputError, match="never overwritten"):
        list(make_round_keys(tmp_path / "keys", 1))


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [(b"", 0o600, "no key of a round"), (b"\xff", 0o600, "that can be read"), (None, 0o644, "wider than 0600")],
)
def test_what_is_no_round_key_is_refused(tmp_path: Path, content: bytes | None, mode: int, words: str) -> None:
    saved(tmp_path, pem(0) if content is None else content, mode)
    with pytest.raises(ConfigError, match=words):
        load_round_keys(tmp_path)


def test_an_issuer_without_openssl_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="install it"):
        load_round_keys(tmp_path)
