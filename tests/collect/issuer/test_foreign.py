"""Tokens and binary HTTP with programs of others at the other end: Cloudflare's Privacy Pass, and bhttp-js."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.collect.issuer.test_app import At, issuing
from tests.collect.issuer.test_redemption import said
from tests.collect.issuer.world import TokenWorld, pem
from tests.device.issuer import public_of, secret_of
from tests.node import CLIENT, Node, needs_client

from dovetail.collect.issuer.signing import OpensslSigner
from dovetail_protocol.binary_http import BinaryRequest, BinaryResponse, Fields, padded
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.tokens import apply_for, token_request

pytestmark = needs_client
SIZES = (1, 63, 64, 16383, 16384, 70000)  # lengths of one, two and four bytes
OURS = public_of(secret_of(0))


@pytest.fixture(scope="module")
def foreign() -> Iterator[Node]:
    """Others' code, in Node."""
    with Node(CLIENT / "test" / "foreign.mjs") as started:
        yield started


@dataclass(frozen=True)
class ForeignSigner:
    """An issuer of somebody else with one of our keys."""

    node: Node
    place: int

    def sign(self, blinded: bytes) -> bytes:
        key = secret_of(self.place)
        request = token_request(public_of(key), blinded)
        return bytes.fromhex(self.node.ask({"sign": {"pem": pem(self.place).decode(), "request": request.hex()}}))


def test_a_foreign_client_gets_a_token_over_http_and_the_shuffler_takes_it_once(
    foreign: Node, tmp_path: Path
) -> None:
    world, once = TokenWorld(), SigningKey.generate()
    rule, by = world.asked.tokens, world.keys[0].signing
    assert rule is not None and by is not None
    (tmp_path / "round.pem").write_bytes(pem(0))
    signer = OpensslSigner(tmp_path / "round.pem", secret_of(0).public_key().public_numbers())
    asked = {"challenge": rule.challenge(world.asked.id, 1).hex(), "key": OURS.spki.hex()}
    nonce = sha256(once.verifying_key().public).hexdigest()
    request = bytes.fromhex(foreign.ask({"blind": {**asked, "nonce": nonce}}))
    with issuing(world, world.opened(signers={OURS: signer})) as url:
        signed = At(url).ask("", apply_for(world.asked.id, 1, request, by, key=OURS))
    assert isinstance(signed, bytes), signed
    token = bytes.fromhex(foreign.ask({"finish": signed.hex()}))
    entered = rule.input(world.asked.id, 1, once.verifying_key())
    assert token[:-256] == entered
    first = said(world, once, token[-256:])
    again = said(world, once, token[-256:], value=1)
    stolen = said(world, SigningKey.generate(), token[-256:])
    assert world.world.deliver([first, again, stolen]) == ["accepted", "second_report", "signature"]


def test_a_device_reports_with_tokens_that_a_foreign_issuer_signed(foreign: Node) -> None:
    world = TokenWorld()
    signers = {public_of(secret_of(place)): ForeignSigner(foreign, place) for place in range(2)}
    world.way.issuer = world.opened(signers=signers)
    bench = world.bench()
    assert [receipt.state for receipt in bench.device.fetch_tokens(1)] == ["held"] * 2
    assert bench.device.submit(1).state == "accepted"
    assert world.world.store.rounds("commute")[0].count == 1


def spoken(fields: Fields, content: bytes) -> dict[str, Any]:
    """A message's rest as JSON."""
    return {"headers": [list(pair) for pair in fields], "content": content.hex()}


@pytest.mark.parametrize("size", [0, *SIZES])
def test_others_read_and_write_the_requests_and_responses_that_we_do(foreign: Node, size: int) -> None:
    """Byte for byte, up to the zeros that every message is padded with."""
    content, room = bytes([7]) * size, size + 999
    fields: Fields = (("content-type", "application/octet-stream"), ("x-other", "a b"))
    request = BinaryRequest("POST", "https", "shuffler:8443", "/v1/reports", fields, content)
    response = BinaryResponse(202, fields, content)
    for ours in (request.encode(), padded(request.encode(), room)):
        told = {"method": "POST", "url": "https://shuffler:8443/v1/reports", **spoken(fields, content)}
        assert foreign.ask({"decode": ours.hex()}) == told
    for ours in (response.encode(), padded(response.encode(), room)):
        assert foreign.ask({"decode": ours.hex()}) == {"status": 202, **spoken(fields, content)}
    sent = {"headers": dict(fields), "body": content.hex()}
    asked = {"method": "POST", "url": "https://shuffler:8443/v1/reports", **sent}
    theirs = [bytes.fromhex(foreign.ask({"encode": each})) for each in (asked, {"status": 202, **sent})]
    assert [padded(each, room) for each in theirs] == [padded(each.encode(), room) for each in (request, response)]
    assert [BinaryRequest.decode(theirs[0]), BinaryResponse.decode(theirs[1])] == [request, response]
