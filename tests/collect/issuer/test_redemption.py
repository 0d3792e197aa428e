"""A device, an issuer and a shuffler: one token, one report of one round, whoever fails, steals or repeats."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.collect.issuer.world import ROUNDS, TokenWorld, signers, with_tokens
from tests.collect.shuffler.world import BEGIN, DEVICES, PERIOD, SHUFFLER, campaign, message
from tests.device.issuer import secret_of, sign_blinded

from dovetail.collect.analyzer.sentences import guarantee_sentences
from dovetail.collect.campaign.explain import explain
from dovetail.collect.campaign.guarantees import ReleasedBatch, campaign_guarantees
from dovetail.collect.issuer.issuer import Entitlement
from dovetail.core.guarantee import CentralDP
from dovetail_device.http import HttpIssuer
from dovetail_device.ledger import terms_of
from dovetail_device.tokens import TokenRefused, fetch_token
from dovetail_protocol.errors import ConfigError
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.messages import open_envelope, plain, seal
from dovetail_protocol.tokens import PendingToken


def bought(world: TokenWorld, place: int = 0, round: int = 1) -> tuple[SigningKey, bytes]:
    """A one-time key and its token, as a device of the roster gets them."""
    outbox = world.bench(place).outbox
    held = outbox.token(world.asked, round, lambda: PendingToken.draw(world.asked.tokens, round))  # type: ignore[arg-type]
    bench = world.bench(place)
    bench.outbox = outbox
    bench.restart().fetch_tokens(ahead=round - 1)
    held = outbox.token(world.asked, round, lambda: pytest.fail("it is there"))
    return SigningKey(held.secret), held.token


def said(world: TokenWorld, secret: SigningKey, token: bytes, round: int = 1, value: int = 0) -> bytes:
    asked = world.asked
    return seal(asked, round, plain(asked, asked.mechanism.encode(value)), secret, token=token)


def test_devices_fetch_tokens_report_and_are_counted_and_the_shuffler_learns_no_name() -> None:
    world = TokenWorld(count=5)
    benches = [world.bench(place) for place in range(5)]
    for bench in benches:
        assert [receipt.state for receipt in bench.device.fetch_tokens(1)] == ["held"] * 2
    assert world.store.counts() == {("commute", round): 5 for round in (1, 2)}
    for round in (1, 2):
        world.clock.time = BEGIN + (round - 1) * PERIOD
        assert [bench.device.submit(1).state for bench in benches] == ["accepted"] * 5
        world.world.to_round(round + 1)
        world.world.shuffler.step(world.world.clock.now())
    assert len(world.way.asked) == 10, "nothing was asked for when it was needed"
    batches = world.world.analyzer.batches.values()
    assert sorted(len(batch.entries) for batch in batches) == [5, 5]
    assert SHUFFLER.opening
    seen = [open_envelope(world.asked, wire, SHUFFLER.opening.opener()).device for wire in world.transport.sent]
    assert len(set(seen)) == 10, "a key for each round"
    assert not {key.signing.verifying_key() for key in world.keys if key.signing} & set(seen)


def test_one_token_counts_once_whatever_is_sent_with_it() -> None:
    world = TokenWorld()
    secret, token = bought(world)
    first = said(world, secret, token)
    told = world.world.deliver(
        [first, first, said(world, secret, token, value=1), said(world, secret, token, value=2)]
    )
    assert told == ["accepted", "accepted", "second_report", "second_report"]
    assert world.world.store.rounds("commute")[0].count == 1


def test_a_token_is_worth_nothing_in_another_round_another_campaign_or_another_hand() -> None:
    world = TokenWorld()
    secret, token = bought(world)
    assert world.world.deliver([said(world, DEVICES[0], token)]) == ["signature"], "stolen without its key"
    world.world.to_round(2)
    assert world.world.deliver([said(world, secret, token, round=2)]) == ["signature"]
    other = TokenWorld(asked=with_tokens(id="others"))
    assert other.world.deliver([said(other, secret, token)]) == ["signature"]
    assert world.world.deliver([said(world, secret, bytes(256), round=2), b"DVTL" + bytes(600)]) == [
        "signature",
        "version",
    ]
    assert world.world.store.rounds("commute")[0].count == 0


def test_a_report_without_a_token_is_none() -> None:
    world = TokenWorld()
    assert world.world.deliver([message(campaign(), DEVICES[0])]) == ["campaign"]


def test_hoarded_tokens_of_several_rounds_are_one_report_each() -> None:
    """Ten rounds' tokens cannot be spent in one: each is bound to the key of its round."""
    world = TokenWorld()
    hoard = [bought(world, 0, round) for round in (1,)]
    bench = world.bench(1)
    bench.device.fetch_tokens(ahead=3)
    for round in (1, 2, 3, 4):
        held = bench.outbox.token(world.asked, round, lambda: pytest.fail("it is there"))
        hoard.append((SigningKey(held.secret), held.token))
    told = world.world.deliver([said(world, secret, token) for secret, token in hoard])
    assert told == ["accepted", "accepted", "signature", "signature", "signature"]


def test_a_second_report_in_a_round_is_never_drawn_and_no_second_token_asked_for() -> None:
    world = TokenWorld()
    bench = world.bench()
    assert bench.device.submit(1).drawn and not bench.device.submit(2).drawn
    assert len(world.way.asked) == 1 and len(world.transport.sent) == 1
    assert [receipt.state for receipt in bench.device.fetch_tokens(0)] == ["spent"]


def test_an_issuer_that_marks_a_device_with_a_key_of_its_own_gets_no_report_of_it() -> None:
    """Key consistency: the device holds the answer against the key that everybody's campaign names, and stops."""
    world = TokenWorld()
    world.way.after = lambda signed: sign_blinded(secret_of(ROUNDS), world.way.asked[-1][-256:])
    bench = world.bench()
    with pytest.raises(TokenRefused, match="tell this device from others") as refused:
        bench.device.submit(1)
    assert refused.value.reason == "forged" and not world.transport.sent and bench.outbox.ledgers()[0].spent == 0.0
    world.way.after = lambda signed: signed
    with pytest.raises(TokenRefused):
        bench.restart().submit(1)
    assert len(world.way.asked) == 1, "it asks neither again nor with another nonce"


def test_a_device_that_a_key_cannot_hide_asks_for_nothing_and_draws_no_other_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    factor = secret_of(0).private_numbers().p
    monkeypatch.setattr("dovetail_protocol.tokens.encode_pss", lambda *_: factor.to_bytes(256))
    world = TokenWorld()
    bench = world.bench()
    with pytest.raises(TokenRefused, match="hides nothing") as refused:
        bench.device.submit(1)
    assert refused.value.reason == "forged" and bench.outbox.ledgers()[0].spent == 0.0
    monkeypatch.undo()
    assert [receipt.state for receipt in bench.restart().fetch_tokens(0)] == ["refused"]
    assert not world.way.asked and not world.transport.sent


@pytest.mark.parametrize("asked_only", [True, False])
def test_what_was_drawn_for_one_key_is_neither_asked_nor_sent_with_under_another(asked_only: bool) -> None:
    """A blinding factor under two moduli, or a one-time key in two requests, tells whose report is whose."""
    world = TokenWorld()
    world.way.before = lambda: "unavailable" if asked_only else None
    outbox, key = world.bench().outbox, world.keys[0].signing
    assert key
    first, _ = fetch_token(outbox, world.asked, 1, issuer=world.way, by=key)
    assert first.state == ("asked" if asked_only else "held") and first.secret
    moved = with_tokens(version=2, url="https://elsewhere.example.org")
    assert outbox.token(moved, 1, lambda: pytest.fail("it is there")) == first, "the address binds nothing"
    world.way.before = lambda: pytest.fail("it asked")
    for version in (with_tokens(version=2, first=1), world.asked):
        held, reason = fetch_token(outbox, version, 1, issuer=world.way, by=key)
        assert (held.state, held.reason, reason) == ("refused", "changed", "changed")
        assert held.secret == held.salt == held.factor == held.token == b""


def test_a_device_asks_where_the_version_that_it_follows_says() -> None:
    world = TokenWorld()
    bench = world.bench()
    bench.device.fetch_tokens(0)
    moved = with_tokens(version=2, url="https://elsewhere.example.org")
    bench.restart(moved).fetch_tokens(1)
    bench.restart(world.asked).fetch_tokens(2)  # given the older file, it follows the newer one all the same
    assert world.way.places == ["https://issuer.example.org", *["https://elsewhere.example.org"] * 2]
    with pytest.raises(ConfigError, match=r"`tokens.url` must be https:// beyond this machine"):
        HttpIssuer().ask("http://elsewhere.example.org", b"")


@pytest.mark.parametrize("answer", [b"", b"x" * 255, b"<html>"])
def test_what_no_issuer_says_is_a_reason_to_try_again(answer: bytes) -> None:
    world = TokenWorld()
    world.way.after = lambda signed: answer
    bench = world.bench()
    receipt = bench.device.submit(1)
    assert (receipt.state, receipt.reason, receipt.drawn) == ("waiting", "token", True) and not world.transport.sent
    assert "it has no token" in str(receipt)
    world.way.after = lambda signed: signed
    world.clock.time += 60
    assert [each.state for each in bench.restart().flush()] == ["accepted"]
    assert len(set(world.way.asked)) == 1, "the same request, byte for byte"


def test_an_issuer_that_does_not_answer_costs_no_report_and_one_that_refuses_costs_no_budget() -> None:
    world = TokenWorld()
    world.way.before = lambda: "unavailable"
    bench = world.bench()
    assert bench.device.submit(1).state == "waiting"
    world.way.before, world.clock.time = lambda: None, BEGIN + 60
    assert [each.state for each in bench.device.flush()] == ["accepted"]
    stranger = TokenWorld()
    stranger.issuer = stranger.opened(entitled=Entitlement("roster", lambda *_: False))
    stranger.way.issuer = stranger.issuer
    bench = stranger.bench()
    with pytest.raises(TokenRefused, match="does not know this device"):
        bench.device.submit(1)
    assert bench.outbox.ledgers()[0].spent == 0.0 and bench.outbox.find("commute", 1) is None
    stranger.way.issuer = stranger.opened()
    assert bench.device.submit(1).state == "accepted"


def test_a_report_that_waits_for_a_token_that_was_given_away_is_refused_and_blocks_no_other_round() -> None:
    """Storage that was lost between asking and having: the round is gone, and the next one is not."""
    world = TokenWorld()
    assert world.bench().device.fetch_tokens(0)[0].state == "held"
    lost = world.bench()  # the same device with an empty outbox
    world.way.before = lambda: "unavailable"
    assert lost.device.submit(1).state == "waiting"
    world.way.before, world.clock.time = lambda: None, BEGIN + 60
    assert [(each.state, each.reason) for each in lost.device.flush()] == [("refused", "token")]
    world.world.to_round(2)
    world.clock.time = world.world.clock.now()
    assert lost.device.submit(1).state == "accepted"


def test_a_report_that_waits_for_a_token_past_the_end_of_its_round_is_refused() -> None:
    world = TokenWorld(asked=with_tokens(small="drop"))
    world.way.before = lambda: "unavailable"
    bench = world.bench()
    assert bench.device.submit(1).state == "waiting"
    world.way.before = lambda: None
    world.world.to_round(2)
    world.clock.time = world.world.clock.now()
    assert [(each.state, each.reason) for each in bench.device.flush()] == [("refused", "token")]


def test_a_new_version_of_the_campaign_takes_the_token_of_the_old_one() -> None:
    world = TokenWorld()
    bench = world.bench()
    bench.device.fetch_tokens(0)
    fresh = with_tokens(version=2, url="https://elsewhere.example.org")
    assert terms_of(fresh) == terms_of(world.asked) != terms_of(with_tokens(first=1))
    world.world.campaign = fresh
    world.world.restart()
    assert bench.device.submit(1).state == "accepted" and bench.device.campaign.version == 2
    assert len(world.way.asked) == 1


def test_what_a_device_keeps_of_a_token_goes_with_its_report(tmp_path: Path) -> None:
    """Whoever takes the device later finds neither the one-time key nor what hid the request."""
    world = TokenWorld()
    bench = world.bench(path=tmp_path / "outbox")
    bench.device.fetch_tokens(1)
    before = bench.outbox.token(world.asked, 1, lambda: pytest.fail("it is there"))
    assert (before.state, before.salt, before.factor) == ("held", b"", b"") and len(before.token) == 256
    assert bench.device.submit(1).state == "accepted"
    after = bench.outbox.token(world.asked, 1, lambda: pytest.fail("it is there"))
    assert (after.state, after.secret, after.token) == ("spent", b"", b"")
    bench.outbox.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert before.secret not in kept and before.token not in kept


def test_a_device_needs_an_issuer_exactly_where_the_campaign_has_tokens() -> None:
    world = TokenWorld()
    world.way = None  # type: ignore[assignment]
    with pytest.raises(ConfigError, match="name their `issuer`"):
        world.bench()
    plain_world = TokenWorld()
    plain_world.asked = campaign()
    with pytest.raises(ConfigError, match="asks for no tokens"):
        plain_world.bench().device.fetch_tokens()


def test_tokens_are_fetched_before_the_first_round() -> None:
    world = TokenWorld()
    world.clock.time = BEGIN - 10 * PERIOD
    assert [receipt.state for receipt in world.bench().device.fetch_tokens(1)] == ["held", "held"]
    world.way.issuer = world.opened(signers=signers(count=1))
    told = [str(receipt) for receipt in world.bench(1).device.fetch_tokens(1)]
    assert told[1] == "commute, token of round 2: waiting (the issuer has no tokens of this round on sale)."


def test_every_request_that_the_issuer_saw_fits_every_token_that_the_shuffler_saw() -> None:
    """Nothing that both have noted says which is whose: for each pair there is a factor that explains it exactly."""
    world = TokenWorld(count=3)
    benches = [world.bench(place) for place in range(3)]
    tokens = []
    for bench in benches:
        bench.device.fetch_tokens(0)
        held = bench.outbox.token(world.asked, 1, lambda: pytest.fail("it is there"))
        tokens.append((SigningKey(held.secret).verifying_key(), held.token))
    rule, secret = world.asked.tokens, secret_of(0).private_numbers()
    assert rule is not None
    modulus = rule.key(1).rsa.modulus
    for device, token in tokens:
        message = rule.input("commute", 1, device)
        encoded = pow(int.from_bytes(token), 65537, modulus)  # as the device had it before blinding
        for asked, answered in zip(world.way.asked, world.way.answered, strict=True):
            blinded = int.from_bytes(asked[-256:])
            factor = pow(blinded * pow(encoded, -1, modulus), secret.d, modulus)
            assert encoded * pow(factor, 65537, modulus) % modulus == blinded
            assert rule.key(1).rsa.unblind(message, answered, factor=factor) == token


def test_the_promise_says_that_distinct_people_rest_on_the_issuer() -> None:
    asked = with_tokens(minimum=500)
    found = explain(asked)
    assert isinstance(found.central, CentralDP), "distinct people are assured, by the issuer"
    assert "distinct people rest on the issuer of tokens alone" in "; ".join(found.warnings)
    assert "add [ohttp]" in "; ".join(found.warnings)
    released = ReleasedBatch(t=1, sent=500, n=500, smallest=500)
    told = {line.name: line.meaning for line in guarantee_sentences(asked, campaign_guarantees(asked, [released]))}
    assert "rest on the issuer issuer.example.org" in told["Distinct people"]
    assert "the issuer of tokens checks" in told["Latest batch (round 1)"]
