"""Oblivious HTTP and binary HTTP: the RFCs' own bytes, a foreign implementation at either end, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyPair
from tests.device.campaigns import campaign

from dovetail_protocol.binary_http import BinaryRequest, BinaryResponse, padded
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.keys import OpeningKey, text
from dovetail_protocol.messages import answer_length, longest_request, oblivious_request, require_room
from dovetail_protocol.ohttp import Gateway, GatewayKey, PendingResponse, UnknownKey

# RFC 9458, appendix A.
SECRET = bytes.fromhex("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a")
EPHEMERAL = bytes.fromhex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73")
PUBLIC = bytes.fromhex("31e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e798155")
REQUEST = bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f")
SEALED_REQUEST = bytes.fromhex(
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472"
    "6374e469135906992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525"
)
RESPONSE = bytes.fromhex("0140c8")
EXPORTED = bytes.fromhex("62d87a6ba569ee81014c2641f52bea36")
NONCE = bytes.fromhex("c789e7151fcba46158ca84b04464910d")
SEALED_RESPONSE = bytes.fromhex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd")

KEY = GatewayKey(1, PUBLIC)
GATEWAY = Gateway(((KEY, OpeningKey("x25519", SECRET)),))
OWN = OpeningKey("x25519", bytes(range(32)))
FOREIGN = json.loads((Path(__file__).parent / "vectors" / "ohttp.json").read_text())
each_of_others = pytest.mark.parametrize("other", FOREIGN.values(), ids=FOREIGN)


def test_the_request_of_the_rfc_is_made_byte_for_byte() -> None:
    request = BinaryRequest("GET", "https", "example.com", "/")
    assert request.encode() == REQUEST
    assert KEY.seal(REQUEST, X25519PrivateKey.from_private_bytes(EPHEMERAL))[0] == SEALED_REQUEST


def test_the_request_of_the_rfc_is_opened_and_answered_byte_for_byte() -> None:
    opened, pending = GATEWAY.open(SEALED_REQUEST)
    assert BinaryRequest.decode(opened) == BinaryRequest("GET", "https", "example.com", "/")
    assert pending.exported == EXPORTED
    assert pending.seal(BinaryResponse(200).encode(), NONCE) == SEALED_RESPONSE


def test_the_answer_of_the_rfc_is_opened() -> None:
    _, pending = KEY.seal(REQUEST, X25519PrivateKey.from_private_bytes(EPHEMERAL))
    assert pending.open(SEALED_RESPONSE) == RESPONSE
    assert BinaryResponse.decode(RESPONSE) == BinaryResponse(200)


def test_a_configuration_is_written_as_the_rfc_has_it_and_read_again() -> None:
    written = KEY.configuration()
    assert written == bytes.fromhex("010020") + PUBLIC + bytes.fromhex("000400010001")
    assert GatewayKey.parse("keys", str(KEY)) == KEY
    ours = GatewayKey.of(OWN)
    assert Gateway.of([OWN]).configurations() == b"\0\x29" + ours.configuration()


def test_a_foreign_gateway_opens_our_request_and_we_open_its_answer() -> None:
    """pyhpke has HPKE with export: the rest of a foreign gateway is what RFC 9458 says of the answer."""
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
    wire, pending = KEY.seal(REQUEST)
    secret = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(SECRET))
    there = suite.create_recipient_context(wire[7:39], secret, info=b"message/bhttp request\0" + wire[:7])
    assert there.open(wire[39:]) == REQUEST
    answer = PendingResponse(wire[7:39], there.export(b"message/bhttp response", 16)).seal(RESPONSE)
    assert pending.open(answer) == RESPONSE


def test_we_open_a_foreign_request() -> None:
    suite = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
    head = SEALED_REQUEST[:7]
    drawn = X25519PrivateKey.from_private_bytes(EPHEMERAL)
    secret, own = (KEMKey.from_pyca_cryptography_key(each) for each in (drawn, drawn.public_key()))
    public = KEMKey.from_pyca_cryptography_key(X25519PrivateKey.from_private_bytes(SECRET).public_key())
    enc, there = suite.create_sender_context(
        public, info=b"message/bhttp request\0" + head, eks=KEMKeyPair(secret, own)
    )
    opened, pending = GATEWAY.open(head + enc + there.seal(REQUEST))
    assert opened == REQUEST and pending.exported == there.export(b"message/bhttp response", 16)


@each_of_others
def test_requests_of_whole_foreign_clients_are_opened_and_they_have_read_these_answers(other) -> None:  # type: ignore[no-untyped-def]
    """Each client has opened the answer that we gave it then; it is the one that we give now."""
    for exchange in other["client"]:
        sent, request, answered = (bytes.fromhex(exchange[name]) for name in ("sent", "request", "answered"))
        opened, pending = Gateway.of([OWN]).open(sent)
        asked = BinaryRequest.decode(opened)
        assert opened == request and asked.authority == "shuffler" and asked.path.startswith("/v1/")
        answer = pending.open(answered)
        assert answer is not None and pending.seal(answer, answered[:16]) == answered
        found = BinaryResponse.decode(answer)
        assert (found.status, found.content.hex()) == (exchange["status"], exchange["content"])


@each_of_others
def test_whole_foreign_gateways_have_opened_our_request_and_we_open_their_answer(other) -> None:  # type: ignore[no-untyped-def]
    exchange = {name: bytes.fromhex(value) for name, value in other["gateway"].items()}
    theirs = GatewayKey.parse("keys", text(exchange["configuration"]))
    request = padded(oblivious_request("POST", "/v1/reports", bytes(range(64))).encode(), 448)
    drawn = X25519PrivateKey.from_private_bytes(bytes(range(100, 132)))
    wire, pending = theirs.seal(request, drawn)
    assert wire == exchange["sent"]
    answer = pending.open(exchange["answered"])
    assert answer is not None
    found = BinaryResponse.decode(answer)
    assert (found.status, found.fields, found.content) == (202, (("dovetail-answer", "AAAA"),), b"abc")


@pytest.mark.parametrize("place", range(7))
def test_another_key_or_other_algorithms_are_unknown(place: int) -> None:
    changed = bytearray(SEALED_REQUEST)
    changed[place] ^= 1
    with pytest.raises(UnknownKey):
        GATEWAY.open(bytes(changed))


@given(place=st.integers(7, len(SEALED_REQUEST) - 1), bit=st.integers(0, 7))
def test_a_changed_request_is_refused(place: int, bit: int) -> None:
    changed = bytearray(SEALED_REQUEST)
    changed[place] ^= 1 << bit
    if place != 38 or bit != 7:  # the last bit of a point is not read (RFC 7748, section 5)
        with pytest.raises(DataError):
            GATEWAY.open(bytes(changed))


@pytest.mark.parametrize("length", [0, 6, 7, 38, 39, 54])
def test_a_request_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(DataError):
        GATEWAY.open(SEALED_REQUEST[:length])


def test_the_answer_to_another_request_is_none() -> None:
    _, first = KEY.seal(REQUEST)
    wire, _ = KEY.seal(REQUEST)
    assert first.open(GATEWAY.open(wire)[1].seal(RESPONSE)) is None
    assert first.open(b"") is None


def test_a_point_of_small_order_is_refused() -> None:
    with pytest.raises(DataError):
        GATEWAY.open(SEALED_REQUEST[:7] + bytes(32) + SEALED_REQUEST[39:])


def test_two_keys_with_one_id_are_refused() -> None:
    with pytest.raises(ConfigError, match="one id"):
        Gateway.of([OWN, OWN])


def test_a_key_against_quantum_computers_is_refused_for_a_gateway() -> None:
    with pytest.raises(ConfigError, match="x25519"):
        GatewayKey.of(OpeningKey.generate("mlkem768-x25519"))


# Binary HTTP.

texts = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=80)
fields = st.lists(st.tuples(st.from_regex(r"[a-z-]{1,20}", fullmatch=True), texts), max_size=3).map(tuple)


@given(method=texts, path=texts, lines=fields, content=st.binary(max_size=200), more=st.integers(0, 100))
def test_a_request_is_read_as_it_was_written_whatever_its_padding(method, path, lines, content, more) -> None:  # type: ignore[no-untyped-def]
    request = BinaryRequest(method, "https", "here", path, lines, content)
    written = request.encode()
    assert BinaryRequest.decode(padded(written, len(written) + more)) == request


@given(status=st.integers(200, 599), lines=fields, content=st.binary(max_size=20_000))
def test_a_response_is_read_as_it_was_written(status, lines, content) -> None:  # type: ignore[no-untyped-def]
    response = BinaryResponse(status, lines, content)
    assert BinaryResponse.decode(padded(response.encode(), 40_000)) == response


def test_a_request_of_the_binary_rfc_with_headers_and_padding_is_read() -> None:
    """RFC 9292, section 5.1, the first example: a request of known length, and ten bytes of padding."""
    data = bytes.fromhex(
        "0003474554056874747073000a2f68656c6c6f2e747874406c0a757365722d6167656e74346375726c2f372e31362e3320"
        "6c69626375726c2f372e31362e33204f70656e53534c2f302e392e376c207a6c69622f312e322e3304686f73740f777777"
        "2e6578616d706c652e636f6d0f6163636570742d6c616e67756167650665"
        "6e2c206d690000"
    )
    found = BinaryRequest.decode(data + bytes(10))
    assert (found.method, found.scheme, found.authority, found.path) == ("GET", "https", "", "/hello.txt")
    assert [name for name, _ in found.fields] == ["user-agent", "host", "accept-language"]
    assert found.fields[2] == ("accept-language", "en, mi") and found.content == b""
    assert found.encode() + bytes(2) == data


@given(data=st.binary(max_size=200))
def test_anything_is_read_or_refused(data: bytes) -> None:
    for kind in (BinaryRequest, BinaryResponse):
        try:
            kind.decode(data)  # type: ignore[attr-defined]
        except DataError as refusal:
            assert "\n" not in str(refusal)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(REQUEST[:-1], id="cut in the path"),
        pytest.param(b"\2" + REQUEST[1:], id="of unknown length"),
        pytest.param(REQUEST + b"\0\0\0\1", id="something in the padding"),
        pytest.param(REQUEST + b"\0\0\1a", id="trailers"),
        pytest.param(REQUEST + b"\x08\1A\1b\1c\1d\0", id="a header in capitals"),
        pytest.param(b"\0\4GE\nT\0\0\0", id="a line break in the method"),
        pytest.param(REQUEST + b"\x05\1a\2\r\n\0", id="a line break in a header"),
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(DataError):
        BinaryRequest.decode(data)


def test_a_response_that_is_not_final_is_refused() -> None:
    with pytest.raises(DataError, match="200 to 599"):
        BinaryResponse.decode(bytes.fromhex("014066") + bytes(3))  # 102, of RFC 9292, section 5.2


# What campaigns say of it.


def route(**changes: object) -> dict[str, object]:
    base = {"relay": "https://relay.example.org", "keys": [str(GatewayKey.of(OWN))], "pad": 512}
    return {f"ohttp.{key}": value for key, value in (base | changes).items()}


def test_a_campaign_names_relay_key_and_length() -> None:
    found = campaign(route())[0].ohttp
    assert found is not None and found.relay == "https://relay.example.org"
    assert found.keys == (GatewayKey.of(OWN),) and found.pad == 512


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"relay": "ftp://relay"}, "ohttp.relay"),
        ({"keys": []}, "must name a key"),
        ({"keys": ["AAAA"]}, "must be a key of a gateway"),
        ({"pad": 10}, "ohttp.pad"),
        ({"relais": "x"}, "is not a key of a campaign"),
    ],
)
def test_a_bad_route_is_refused_in_one_line(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        campaign(route(**changes))
    assert "\n" not in str(refused.value)


def test_a_relay_and_an_endpoint_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="replaces"):
        campaign({**route(), "endpoints.http": "https://shuffler.example.org"})


def test_a_length_below_the_longest_request_is_refused_and_that_length_is_not() -> None:
    asked, _ = campaign(route())
    longest = longest_request(asked)
    require_room(campaign(route(pad=longest))[0])
    with pytest.raises(ConfigError, match=f"below {longest}"):
        require_room(campaign(route(pad=longest - 1))[0])
    path = oblivious_request("GET", f"/v1/campaigns/{'a' * 64}/round")
    assert len(path.encode()) < longest  # a report is longer than a question about a round


def test_answers_have_one_length_and_campaign_files_a_multiple_of_a_page() -> None:
    assert {answer_length(size) for size in range(513)} == {512}
    assert [answer_length(size) for size in (513, 4096, 4097)] == [4096, 4096, 8192]


def test_a_relay_is_named_in_plain_ascii() -> None:
    with pytest.raises(ConfigError, match=r"`ohttp.relay` must be .* in plain ASCII"):
        campaign(route(relay="https://rel\u00e4y.example.org"))
