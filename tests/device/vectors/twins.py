"""Write what twins in other languages must do alike: draws, masses, refusals, campaign files and whole messages.

Randomness is a stream: block i is SHA-256(seed | i as 8 bytes, big endian), and draws consume whole bytes of it, none
is skipped. What is written here is made by the reference, with ephemeral keys that pyhpke takes from outside.

    python -m tests.device.vectors.twins

writes `twins.json`, and `delivery_table.ts` of the TypeScript client from the machine of `dovetail_device.sender`.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKey, KEMKeyPair
from tests.device.campaigns import MECHANISMS, bytes_of, campaign, changed, document, keys, toml
from tests.device.issuer import sign_blinded
from tests.device.test_campaign import MISSING, WRONG
from tests.device.vectors import asking, hand_overs
from tests.device.vectors.asking import USERS

from dovetail_device import sender
from dovetail_device.ledger import question_key
from dovetail_protocol.binary_http import BinaryResponse, padded
from dovetail_protocol.campaign import _DOMAIN, SIGNED, Campaign
from dovetail_protocol.errors import DataError, DovetailError, ParameterError
from dovetail_protocol.exact_thresholds import Words, exp_bracket, krr_masses
from dovetail_protocol.joint import Several
from dovetail_protocol.keys import OpeningKey, SigningKey, VerifyingKey, text
from dovetail_protocol.mechanism import Mechanism, stated_in_full
from dovetail_protocol.messages import (
    draw,
    inner_info,
    longest_request,
    oblivious_request,
    open_envelope,
    outer_info,
    split,
)
from dovetail_protocol.ohttp import Gateway, GatewayKey
from dovetail_protocol.tokens import SALT, PendingToken, apply_for, voucher

ROOT = Path(__file__).parents[3]
VECTORS = Path(__file__).parent / "twins.json"
TABLE = ROOT / "clients" / "typescript" / "src" / "delivery_table.ts"
PEER = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)


class Stream(Words):
    """The stream of a seed, and how many bytes of it are used."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._left, self.used = seed, b"", 0

    def bits(self, count: int) -> int:
        size = (count + 7) // 8
        while len(self._left) < size:
            self._left += sha256(self._seed + ((self.used + len(self._left)) // 32).to_bytes(8)).digest()
        taken, self._left = self._left[:size], self._left[size:]
        self.used += size
        return int.from_bytes(taken) >> (8 * size - count)


SYMBOLS = [0, 1, -1]  # of k: the first, the second and the last one
NUMBERS = [0.0, 0.123456789, 0.5, 1.0]  # of the range
DRAWN: list[tuple[str, dict[str, Any], int]] = [
    ("krr", {"k": 2, "epsilon": 1.0}, 30),
    ("krr", {"k": 5, "epsilon": 0.1}, 30),
    ("krr", {"k": 300, "epsilon": 12.5}, 10),
    ("krr", {"k": 1 << 31, "epsilon": 3.0}, 10),
    ("krr", {"k": 3, "epsilon": 700}, 5),
    ("hadamard", {"k": 2, "epsilon": 0.5}, 20),
    ("hadamard", {"k": 20, "epsilon": 2.0}, 30),
    ("hadamard", {"k": 1000, "epsilon": 5.5}, 20),
    ("hadamard", {"k": 1 << 31, "epsilon": 0.25}, 10),
    ("hadamard", {"k": 9, "epsilon": 40.0}, 10),
    ("unary", {"k": 5, "epsilon": 1.5}, 20),
    ("unary", {"k": 8, "epsilon": 0.3, "encoding": "symmetric"}, 20),
    ("unary", {"k": 100, "epsilon": 4.0, "encoding": "optimized"}, 6),
    ("local_hashing", {"k": 300, "epsilon": 1.0}, 12),
    ("local_hashing", {"k": 1 << 31, "epsilon": 11.0}, 8),
    ("local_hashing", {"k": 2, "epsilon": 0.01}, 8),
    ("subset_selection", {"k": 10, "epsilon": 1.0}, 20),
    ("subset_selection", {"k": 2, "epsilon": 3.0}, 10),
    ("subset_selection", {"k": 97, "epsilon": 0.2}, 8),
    ("subset_selection", {"k": 40, "epsilon": 20.0}, 8),
    ("laplace", {"lower": 0.0, "upper": 50.0, "epsilon": 1.0, "grid": 1.5625}, 40),
    ("laplace", {"lower": -3.5, "upper": 2, "epsilon": 0.01, "grid": 5.5 / (1 << 20)}, 20),
    ("laplace", {"lower": 0.0, "upper": 1.0, "epsilon": 1e-6, "grid": 1 / (1 << 30)}, 8),
    ("laplace", {"lower": 0.0, "upper": 1.0, "epsilon": 700.0, "grid": 0.5}, 8),
    ("laplace", {"lower": -1e9, "upper": 1e9, "epsilon": 0.3, "grid": 1e8}, 8),
    ("window", {"lower": 0.0, "upper": 50.0, "epsilon": 2.0, "grid": 0.5, "window": 60}, 40),
    ("window", {"lower": -1.0, "upper": 1.0, "epsilon": 0.5, "grid": 2 / 65536, "window": 40000}, 20),
    ("window", {"lower": 0.0, "upper": 1.0, "epsilon": 30.0, "grid": 1.0, "window": 1}, 8),
    ("closest_direction", {"d": 1, "radius": 1.0, "epsilon": 2.0, "axes": 1}, 6),
    ("closest_direction", {"d": 4, "radius": 2.5, "epsilon": 0.5, "axes": 5}, 8),
    ("closest_direction", {"d": 31, "radius": 1e-3, "epsilon": 700.0, "axes": 40}, 6),
]

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("gauss", {"epsilon": 1.0}),
    ("__proto__", {"epsilon": 1.0}),
    *((name, {"k": 4}) for name in ("krr", "hadamard", "unary", "local_hashing", "subset_selection")),
    *(
        (name, {"k": k, "epsilon": epsilon})
        for name in ("krr", "hadamard", "unary", "local_hashing", "subset_selection")
        for k, epsilon in [
            (1, 1.0),
            ("4", 1.0),
            (2.5, 1.0),
            (True, 1.0),
            (4, 0.0),
            (4, -1.0),
            (4, 700.5),
            (4, "1"),
            (4, True),
        ]
    ),
    *((name, {"k": (1 << 31) + 1, "epsilon": 1.0}) for name in ("krr", "hadamard", "local_hashing")),
    *((name, {"k": (1 << 24) + 1, "epsilon": 1.0}) for name in ("unary", "subset_selection")),
    *((name, {"k": 4, "epsilon": 1.0, "grid": 1.0}) for name in ("krr", "unary")),
    *(
        (name, {"k": 1000, "epsilon": 1e-300})
        for name in ("krr", "hadamard", "unary", "local_hashing", "subset_selection")
    ),
    ("krr", {"k": 1 << 31, "epsilon": 1e-12}),
    ("local_hashing", {"k": 4, "epsilon": 11.5}),
    ("unary", {"k": 4, "epsilon": 1.0, "encoding": "wide"}),
    ("unary", {"k": 4, "epsilon": 1.0, "encoding": 3}),
    ("laplace", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0}),
    ("laplace", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.3}),
    ("laplace", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 17.0}),
    ("laplace", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.0}),
    ("laplace", {"lower": 8.0, "upper": 8.0, "epsilon": 1.0, "grid": 1.0}),
    ("laplace", {"lower": -1e308, "upper": 1e308, "epsilon": 1.0, "grid": 1.0}),
    ("laplace", {"lower": 0.0, "upper": 1.0, "epsilon": 1.0, "grid": 2.0**-32}),
    ("laplace", {"lower": 0.0, "upper": 1.0, "epsilon": 1e-8, "grid": 2.0**-31}),
    ("laplace", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.5, "window": 3}),
    ("window", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.5}),
    ("window", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "window": 3}),
    ("window", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.5, "window": 17}),
    ("window", {"lower": 0.0, "upper": 8.0, "epsilon": 1.0, "grid": 0.5, "window": 0}),
    ("window", {"lower": 0.0, "upper": 1.0, "epsilon": 1e-12, "grid": 2.0**-31, "window": 1 << 31}),
]
VALUES: list[tuple[str, Any]] = [
    ("krr", 4), ("krr", -1), ("krr", 1.5), ("krr", True), ("krr", "a"), ("krr", None), ("hadamard", 20),
    ("unary", 5), ("local_hashing", 300), ("subset_selection", -1), ("laplace", 50.5), ("laplace", True),
    ("laplace", "1"), ("window", -0.5), ("window", None),
]  # fmt: skip
DECODED: list[tuple[str, str]] = [
    ("krr", ""), ("krr", "04"), ("krr", "0000"), ("hadamard", "ff"), ("unary", "ff"), ("unary", "f8f8"),
    ("subset_selection", "ffff"), ("subset_selection", "00"), ("laplace", "7fffffffffffffff"), ("laplace", "00"),
    ("window", "ffff"), ("local_hashing", "00" * 16 + "ff"), ("local_hashing", "00"),
]  # fmt: skip
QUESTIONS = [
    "How did  you get to WORK today?!",
    "",
    "Wie viel, kW_h?",
    "  Ärger\u00a0im Büro ",
    "ﬁne ①",
    "はい？いいえ",
]


def vectors() -> dict[str, Any]:
    """Everything that a twin has to do alike."""
    return {
        "masses": _masses(),
        "draws": [_draws(*each, seed=place) for place, each in enumerate(DRAWN)],
        "refused": [_refused(*each) for each in REFUSED],
        "values": [[name, MECHANISMS[name], value] for name, value in VALUES if _refuses(name, value)],
        "reports": [[name, MECHANISMS[name], data] for name, data in DECODED if _misread(name, data)],
        "questions": [[question, question_key(question)] for question in QUESTIONS],
        "campaigns": _campaigns(),
        "messages": [_message(*each) for each in MESSAGES],
        "asked": [
            asking.answered(name, Stream(bytes([place]) * 32))
            for place, name in enumerate([*asking.ASKED, "joint", "one", "combined"])
        ],
        "misasked": [asking.misasked(*each) for each in asking.MISASKED],
        "unanswered": [asking.unanswered(*each) for each in asking.UNANSWERED],
        "tokens": [_token(*each) for each in TOKENS],
        "oblivious": [_oblivious(*each) for each in EXCHANGES],
    }


def _masses() -> list[list[str]]:
    """k, epsilon, keep, lie, and both ends of the bracket of e^epsilon."""
    found = []
    for k in (2, 3, 10, 1000, 1 << 20):
        for epsilon in (1e-5, 0.1, 0.5, 1.0, 2.0, 3.3, 7.0, 11.0, 20.25, 44.4, 100.0, 344.2, 699.9, 700.0):
            low, high = (_decimal(end) for end in exp_bracket(Fraction(epsilon)))
            found.append(
                [str(k), repr(epsilon), *map(str, krr_masses(k, epsilon)), *(low, high)[: 2 if k == 2 else 0]]
            )
    for x in ("-1/3", "-64", "-262144/7", "1/1000000000000000000000000000000", "-1/1000000000000000000000000000000"):
        found.append([x, *(_decimal(end) for end in exp_bracket(Fraction(x), 75))])
    return found


def _decimal(value: Fraction) -> str:
    """A fraction that is a decimal number, as mantissa and exponent: 123e-2."""
    shift = 0
    while value.denominator != 1:
        value, shift = value * 10, shift - 1
    return f"{value.numerator}e{shift}"


def _draws(name: str, parameters: dict[str, Any], count: int, *, seed: int) -> dict[str, Any]:
    """Reports of one mechanism, one draw after the other from one stream, and the bytes used after each."""
    kind, words = stated_in_full(name, **parameters), Stream(bytes([seed]) * 32)
    k: int | None = getattr(kind, "k", None)
    lower, upper = getattr(kind, "lower", 0.0), getattr(kind, "upper", 0.0)
    values: list[Any] = [v % k for v in SYMBOLS] if k else [lower + part * (upper - lower) for part in NUMBERS]
    if d := getattr(kind, "d", 0):
        values = [[scale * math.cos(place) for place in range(d)] for scale in (0.0, 1e300, 0.001, 3.0)]
    drawn = []
    for place in range(count):
        value = values[place % len(values)]
        drawn.append([value, kind.encode(kind.randomize(value, words)).hex(), words.used])
    return {"name": name, "parameters": parameters, "seed": seed, "bytes": kind.report_bytes, "drawn": drawn}


def _refused(name: str, parameters: dict[str, Any]) -> list[Any]:
    try:
        stated_in_full(name, **parameters)
    except ParameterError:
        return [name, parameters]
    raise AssertionError(f"{name} takes {parameters}")


def _refuses(name: str, value: Any) -> bool:
    try:
        _kind(name).check(value)
    except DataError:
        return True
    raise AssertionError(f"{name} takes {value}")


def _misread(name: str, data: str) -> bool:
    try:
        _kind(name).decode(bytes.fromhex(data))
    except DataError:
        return True
    raise AssertionError(f"{name} reads {data}")


def _kind(name: str) -> Mechanism:
    return stated_in_full(name, **MECHANISMS[name])


# Campaign files: a body, who has signed it, who is trusted, and whether it is taken.

CLASSES = {"randomizer.epsilon": 2.0, "classes": {"careful": 0.5, "usual": 1.0, "open-handed": 2.0}}
GATEWAY = OpeningKey("x25519", bytes_of("gateway", 32))
ROUTE = {"relay": "https://relay.example.org:8403/x", "keys": [str(GatewayKey.of(GATEWAY))], "pad": 448}
ADDED: dict[str, Any] = {"promise.trust": "shuffler", "dummies": {"epsilon": 1.0, "delta": 1e-6, "reach": 30}}
SPARSE: dict[str, Any] = {"epsilon": 1.0, "kept": 0.25, "more": 0.0625}
MEMOIZED = {"constant_values": True}
ORDERED: dict[str, Any] = {
    "shuffler": "mallows",
    "alpha": 1.0,
    "public": "slots.csv",
    "public_sha256": "ab" * 32,
    "groups": {"distance": "place"},
    "points": 3,
}


def _together(*epsilons: float, second: dict[str, Any] | None = None) -> dict[str, Any]:
    """Shares, one for each epsilon, in one report; the second question takes a number where its randomizer does."""
    parts: list[dict[str, Any]] = [{"name": "krr", "k": 2, "epsilon": each} for each in epsilons]
    each: list[dict[str, Any]] = [
        {
            "question": "shares",
            "values": [{"name": f"q{place}", "categories": ["a", "b"]}],
            "symbols": [[{"of": [f"q{place}"], "rounding": "list", "points": 2}]],
        }
        for place in range(len(epsilons))
    ]
    if second is not None:
        parts[1] = second
        each[1] = {
            "question": "number",
            "values": [{"name": "q1", "lower": second["lower"], "upper": second["upper"]}],
        }
    return {"randomizer": {"name": "joint", "parts": parts}, "asks": {"question": "joint", "each": each}}


TAKEN: list[dict[str, Any]] = [
    {},
    {
        "batch.small": "merge",
        "batch.late": "next",
        "batch.close_at": 100,
        "randomizer.categories": ["a", "b", "ü", "\U0001f600"],
        "groups.names": ["north", "south"],
        "precision": {"beta": 0.1, "rho": 0.9},
        "promise.authentication": "none",
        "endpoints": {"http": "https://example.org:8401/shuffler", "mqtt": "mqtts://[::1]"},
        "expires": "2031-01-01T01:00:00+01:00",
    },
    {"rounds": {"schedule": "manual", "count": 3.0}},
    {"rounds.start": "2030-01-01T00:00:00.250-11:30", "rounds.period_seconds": 0.01, "rounds.grace_seconds": 5},
    {"id": "__proto__", "question": "Anything?\\n"},
    {"promise.trust": "shuffler", "dummies": {"epsilon": 1.0, "delta": 1e-6, "reach": 30}},
    {"dummies": {}, "classes": {}, "groups": {}, "endpoints": {}, "precision": {}},
    USERS,
    CLASSES,
    {"version": 2.0, "randomizer.epsilon": 1, "schema_version": 1.0},
    {"ohttp": ROUTE},
    *({"randomizer": {"name": name, **MECHANISMS[name]}} for name in MECHANISMS if name != "budget_laplace"),
    asking.campaign_about("correlation 0"),
    {**asking.campaign_about("digits"), "promise.device_budget": 1.0},
    asking.campaign_about("vector 0"),
    {**asking.campaign_about("joint"), "ohttp": {**ROUTE, "pad": 512}, "groups.names": ["north", "south"]},
    {**asking.campaign_about("one"), "ohttp": {**ROUTE, "pad": 512}, "groups.names": ["north", "south"]},
    *(_together(*each) for each in [(0.1, 0.2), (0.1, 0.20000000000000001665), (700.0, 1e-4, 1.1), (1 / 3, 1e-7)]),
    *({**ADDED, "dummies": {**ADDED["dummies"], "variance": text}} for text in ("1715/4", "7", "9007199254740991/2")),
    {**ADDED, "randomizer": {"name": "none", "k": 4, "categories": list("abcd")}},
    {**ADDED, "randomizer": {"name": "none", "k": 4}, "dummies": SPARSE, "promise.authentication": "none"},
    {**asking.campaign_about("tables 0"), **ADDED, "promise.delta": 3e-6},
    {"shuffle": ORDERED, "batch.small": "drop"},
    {**asking.campaign_about("tables 0"), "ohttp": {**ROUTE, "pad": 2048}},
    {**asking.campaign_about("covariance 0"), "randomizer": {"name": "unary", "k": 9, "epsilon": 1.5}},
    {**asking.campaign_about("combined"), **{key: ADDED[key] for key in ("promise.trust", "dummies")}},
    {"memoize": MEMOIZED, "shuffle": ORDERED, "promise.device_budget": 1.0},
]
LEFT_OUT: list[dict[str, Any]] = [  # the reference takes them, this package refuses them by name
    {"randomizer": {"name": "budget_laplace", **MECHANISMS["budget_laplace"]}},
    _together(1.0, 2.0, second={"name": "budget_laplace", **MECHANISMS["budget_laplace"]}),
]
MORE_WRONG: list[dict[str, Any]] = [
    {"__proto__": {"x": 1}},
    {"randomizer.__proto__": 3},
    {"randomizer.constructor": 3},
    {"question": "\u0085\u2003"},
    {"version": 1 << 53},
    {"batch.minimum": 1 << 70},
    {"endpoints": {"http": "http://h:0"}},
    {"endpoints": {"http": "http://h?x"}},
    {"endpoints": {"http": "HTTP://exämple.org"}},
    {"endpoints": {"http": "http://a b"}},
    {"keys.owner": "ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"keys.analyzer": "x25519:" + "A" * 43},
    {"keys.analyzer": "x25519:" + "A" * 42 + "B"},
    {"shuffle.public_sha256": "AB" * 32},
    {"shuffle.public": "slots.csv"},
    {"promise.trust": "shuffler"},
    {"dummies": {"epsilon": 1.0, "delta": 1e-6, "reach": 30}},
    {"promise.trust": "shuffler", "dummies": {"epsilon": 1.0, "delta": 1e-6, "reach": 30}, "groups.names": ["a"]},
    {**USERS, "randomizer": {"name": "krr", "k": 4, "epsilon": 1.0}},
    {"randomizer": {"name": "none", "k": 4}},
    {**USERS, "randomizer": {"name": "none", "k": 4, "epsilon": 1.0}},
    {**USERS, "dummies": {"epsilon": 1.0, "delta": 1e-6, "rate": 1 / 3}},
    {**USERS, "dummies": {"epsilon": 1.0, "delta": 1e-6, "rate": 1.25}},
    {**USERS, "dummies": {"epsilon": 1.0, "delta": 2e-6, "rate": 0.75}},
    {**USERS, "promise.assumed_honest": 91},
    {**USERS, "promise.authentication": "none"},
    {**USERS, "promise.device_budget": 0.5},
    {**CLASSES, "randomizer.epsilon": 3.0},
    {**CLASSES, "classes": {"one": 2.0}},
    {**CLASSES, "classes": {"one": 2.0, "two": 2.0}},
    {**CLASSES, "classes": {"one two": 1.0, "two": 2.0}},
    {**CLASSES, "classes": {"one": 41.0, "two": 2.0}},
    {**CLASSES, "promise.authentication": "none"},
    {**CLASSES, "groups.names": ["a", "b"]},
    {**CLASSES, "precision": {"beta": 0.1, "rho": 0.9}},
    {**CLASSES, "promise.device_budget": 1.5},
    {**CLASSES, "randomizer": {"name": "hadamard", "k": 4, "epsilon": 2.0}},
    *(
        {**ADDED, "dummies": {**ADDED["dummies"], "variance": text}}
        for text in (
            "2/4",
            "5/1",
            "0",
            "0/2",
            "1.5",
            "-1/2",
            "+1",
            "03",
            "1/07",
            "1/2/3",
            " 1",
            "1_0",
            "9007199254740992",
            5,
            "",
        )
    ),
    {**ADDED, "dummies": {**ADDED["dummies"], "variance": "1/9007199254740992"}},
    {**ADDED, "dummies": {**ADDED["dummies"], "reaches": [30]}},
    {**ADDED, "dummies": {**ADDED["dummies"], "kept": 0.5}},
    {**ADDED, "dummies": SPARSE},
    *(
        {**ADDED, "randomizer": {"name": "none", "k": 4}, "dummies": {**SPARSE, **change}}
        for change in (
            {"kept": 1 / 3},
            {"kept": 1.5},
            {"more": 0.0},
            {"more": "1"},
            {"delta": 1e-6},
            {"reach": 3},
            {"variance": "1"},
        )
    ),
    {**ADDED, "randomizer": {"name": "none", "k": 4}, "dummies": {"epsilon": 1.0, "kept": 0.5}},
    {**ADDED, "randomizer": {"name": "none", "k": 4}, "promise.delta": 1e-7},
    {**ADDED, "randomizer": {"name": "unary", "k": 4, "epsilon": 1.0}},
    {**asking.campaign_about("tables 0"), **ADDED, "promise.delta": 2.9e-6},
    {**asking.campaign_about("tables 0"), **ADDED, "promise.delta": 3e-6, "promise.device_budget": 2.9},
    *(
        {**asking.campaign_about("digits"), "dummies": {**asking.SHUFFLER["dummies"], **change}}
        for change in (
            {"reaches": [30, 20, 10]},
            {"reaches": [30, 20, 10, 0]},
            {"reaches": [30, 20, 10, 2.5]},
            {"reaches": 30},
            {"reach": 30},
            {"variance": 3},
            {"reaches": ["30"] * 4},
            {"reaches": []},
            {"kept": 0.5},
        )
    ),
    {**asking.campaign_about("digits"), "dummies": {"epsilon": 1.0, "delta": 1e-6, "reaches": [30, 20, 10, 7]}},
    {**asking.campaign_about("digits"), **ADDED},
    {**asking.campaign_about("digits"), **USERS},
    {**asking.campaign_about("digits"), "groups.names": ["a"]},
    {**USERS, "dummies": {**USERS["dummies"], "variance": "3"}},
    {**USERS, "dummies": SPARSE},
    *(
        {"shuffle": {**ORDERED, key: value}}
        for key, value in [("groups", {}), ("alpha", -1.0), ("public", 3), ("public_sha256", "ab")]
    ),
    *(
        {"shuffle": ORDERED, **change}
        for change in [
            {"groups.names": ["a"]},
            {"batch.small": "merge"},
            {"batch.late": "next"},
            {"promise.authentication": "none"},
            ADDED,
            USERS,
            CLASSES,
        ]
    ),
    {"randomizer": {"name": "closest_direction", "d": 3, "radius": 1.0, "epsilon": 2.0, "axes": 2}},
    {"randomizer": _together(1.0, 2.0)["randomizer"]},
    {**_together(1.0, 2.0), "promise.device_budget": 2.9},
    {**_together(*[0.1] * 17)},
    {**_together(1.0, 2.0), **ADDED},
    {**_together(1.0, 2.0), "classes": {"one": 1.0, "two": 3.0}},
    {"ohttp": ROUTE, "endpoints": {"http": "https://example.org"}},
    {"ohttp": {**ROUTE, "keys": []}},
    {"ohttp": {**ROUTE, "keys": [str(GatewayKey.of(GATEWAY))[:-1] + "C"]}},
    {"ohttp": {**ROUTE, "pad": 63}},
    {"ohttp": {**ROUTE, "pad": (1 << 17) + 1}},
    {"ohttp": {**ROUTE, "relay": "mqtt://relay.example.org"}},
    *({"memoize": table} for table in (True, {}, {"constant_values": False}, {**MEMOIZED, "time": "week"})),
    *(
        {"memoize": MEMOIZED, **change}
        for change in (
            {"groups.names": ["a"]},
            {"batch.small": "merge"},
            {"batch.late": "next"},
            ADDED,
            USERS,
            CLASSES,
        )
    ),
]


def signed_by(body: bytes, owner: SigningKey) -> bytes:
    """The file of an owner who signs anything."""
    return body + SIGNED + text(owner.sign(_DOMAIN + body)).encode() + b"\n"


def _changed(changes: dict[str, Any]) -> bytes:
    asked = document()
    for path, value in changes.items():
        asked = changed(asked, path, value)
    return toml(asked)


def _campaigns() -> list[dict[str, Any]]:
    owner, stranger = keys().owner, SigningKey(bytes_of("stranger", 32))
    good = toml(document())
    whole = signed_by(good, owner)
    cases: list[tuple[bytes, SigningKey | None, bytes | None]] = [
        *((_changed(changes), None, None) for changes in (*TAKEN, *LEFT_OUT)),
        *((_changed({path: value}), None, None) for path, value, _ in WRONG),
        *((_changed({path: ...}), None, None) for path in MISSING),
        *((_changed(changes), None, None) for changes in MORE_WRONG),
        (good, stranger, None),
        (good, stranger, stranger.verifying_key().public),
        (good, owner, stranger.verifying_key().public),
        (good, owner, owner.verifying_key().public),
        (b"a = 1\na = 2\n", owner, None),
        (b"a = " + b"[" * 2000, owner, None),
    ]
    found = [_judged(signed_by(body, by or owner), trusted) for body, by, trusted in cases]
    found += [
        _judged(whole[:-1], None),
        _judged(whole + b"\n", None),
        _judged(b"\xff" + whole, None),
        _judged(good, None),
    ]
    for path, ids in ((("owner", "second owner"), ("meters", "a-b_C9")),):
        for id in ids:
            vector = hand_overs.vector(id, *path)
            for trusted in (bytes_of(name, 32) for name in (*path, "stranger")):
                found.append(_judged(vector["file"].encode(), SigningKey(trusted).verifying_key().public))
    return found


def left_out(made: Campaign) -> bool:
    """True if the reference takes a campaign of a kind that this package refuses by name."""
    parts = made.mechanism.parts if isinstance(made.mechanism, Several) else (made.mechanism,)
    return made.suite != "x25519" or any(part.name == "budget_laplace" for part in parts)


def _judged(signed: bytes, trusted: bytes | None) -> dict[str, Any]:
    """What the reference says of a file."""
    case: dict[str, Any] = {"file": signed.decode("latin-1")} if b"\xff" in signed else {"file": signed.decode()}
    case |= {"latin": True} if b"\xff" in signed else {}
    case |= {} if trusted is None else {"trusted": trusted.hex()}
    try:
        made = Campaign.parse(signed, None if trusted is None else VerifyingKey(trusted))
    except DovetailError:
        return case
    if left_out(made):
        return {**case, "left_out": True}
    start, expires = made.schedule.start, made.expires
    told = {
        "id": made.id,
        "version": made.version,
        "question": made.question,
        "digest": made.digest.hex(),
        "start": None if start is None else start.timestamp(),
        "expires": None if expires is None else expires.timestamp(),
        "charged": made.charged,
        "affordable": made.affordable,
        "rounds": [made.schedule.round_at(t) for t in (0.0, 1893456000.0, 1893459599.9, 2e9)] if start else [],
        "classes": [[each.name, each.epsilon] for each in made.classes],
        "bytes": made.mechanism.report_bytes,
        "owners": [str(each.old) for each in made.handed_over],
        "longest": None if made.ohttp is None else longest_request(made),
    }
    return {**case, "told": told}


# Whole messages: every random byte is given.

MESSAGES: list[tuple[dict[str, Any], str, int, Any, str | None, int]] = [
    ({}, "krr", 1, 2, None, 0),
    ({}, "krr", 24, 0, None, 0),
    ({"batch.small": "merge", "groups.names": ["north", "south"]}, "hadamard", 2, 19, "south", 0),
    ({}, "unary", 3, 4, None, 0),
    ({}, "local_hashing", 4, 299, None, 0),
    ({}, "subset_selection", 5, 1, None, 0),
    ({"batch.late": "next"}, "laplace", 6, 12.375, None, 0),
    ({}, "window", 7, 33.1, None, 0),
    (USERS, "krr", 8, 3, None, 0),
    (USERS, "krr", 9, 0, None, 0),
    (CLASSES, "krr", 10, 1, None, 0),
    (CLASSES, "krr", 11, 1, None, 2),
    (asking.campaign_about("covariance 0"), "krr", 12, [9.5, 0.125], None, 0),
    (asking.campaign_about("tables 0"), "krr", 13, {"income": "high", "first": "b", "sex": "F"}, None, 0),
    (asking.campaign_about("as it is"), "krr", 14, 2.6, None, 0),
    (asking.campaign_about("digits"), "krr", 15, 2.6, None, 0),
    (asking.campaign_about("vector 0"), "krr", 16, [0.5, -1.25, 7], None, 0),
    (asking.campaign_about("joint"), "krr", 17, ["b", 0.7, 9.5, 0.125], None, 0),
    *((asking.campaign_about("one"), "krr", round, ["b", 0.7, 9.5, 0.125], None, 0) for round in (19, 20, 21)),
    ({**ADDED, "randomizer": {"name": "none", "k": 4}, "dummies": SPARSE}, "krr", 18, 3, None, 0),
    (asking.campaign_about("combined"), "krr", 22, ["b", 9.5, 0.125, 10.5], None, 0),
]


def _message(
    changes: dict[str, Any],
    name: str,
    round: int,
    value: Any,
    group: str | None,
    place: int,
    by: SigningKey | None = None,
    token: bytes = b"",
) -> dict[str, Any]:
    made, held = campaign(changes, name=name)
    signer = by or held.device
    words, report_id = Stream(bytes([round]) * 32), bytes_of(f"report {round}", 16)
    answer = value if made.asked is None else made.asked.check(value)
    plaintext = draw(made.of_class(place), answer, words, group)
    secrets = [bytes_of(f"ephemeral {round} {number}", 32) for number in range(made.entries + 1)]
    entries = [
        _sealed(made.analyzer.public, entry, inner_info(made, round), secret)
        for entry, secret in zip(split(plaintext, made.entries), secrets, strict=False)
    ]
    inner = token + (bytes([place]) if made.classes else b"") + b"".join(entries)
    device = signer.verifying_key().public
    statement = b"dovetail device\0\1" + made.digest + round.to_bytes(4) + report_id + device + inner
    outer = report_id + device + signer.sign(statement) + inner
    wire = b"DVTL\1" + made.digest + round.to_bytes(4)
    wire += _sealed(made.shuffler.public, outer, outer_info(made, round), secrets[-1])
    envelope = open_envelope(made, wire, held.shuffler.opener())
    opener = held.analyzer.opener()
    opened = [opener.open(entry, inner_info(made, round)) for entry in split(envelope.inner, made.entries)]
    assert b"".join(entry or b"" for entry in opened) == plaintext and envelope.place == place
    return {
        "campaign": made.signed.decode(),
        "round": round,
        "value": value,
        "group": group,
        "place": place,
        "device": signer.secret.hex(),
        "id": report_id.hex(),
        "seed": round,
        "ephemeral": [secret.hex() for secret in secrets],
        "plaintext": plaintext.hex(),
        "used": words.used,
        "wire": wire.hex(),
    }


# Tokens: what is drawn for one, what is asked, what the issuer signs, and the report that shows it.

ISSUERS = json.loads(VECTORS.with_name("tokens.json").read_text())["rfc9578"][1:3]
WITH_TOKENS: dict[str, Any] = {
    "rounds.count": 2,
    "promise.authentication": "token",
    "tokens": {
        "issuer": "issuer.example.org",
        "url": "https://issuer.example.org/x",
        "keys": [text(bytes.fromhex(each["pkS"])) for each in ISSUERS],
    },
}
TOKENS: list[tuple[dict[str, Any], int]] = [(WITH_TOKENS, 1), ({**WITH_TOKENS, **CLASSES}, 2)]


def _token(changes: dict[str, Any], round: int) -> dict[str, Any]:
    made, held = campaign(changes)
    assert made.tokens is not None
    salt, factor = bytes_of("salt", SALT), bytes_of("factor", 64) * 4
    pending = PendingToken(SigningKey(bytes_of(f"one-time {round}", 32)), salt, b"\0" + factor[1:])
    request = pending.request(made.tokens, made.id, round)
    secret = load_pem_private_key(bytes.fromhex(ISSUERS[round - 1]["skS"]), None)
    assert isinstance(secret, RSAPrivateKey)
    signed = sign_blinded(secret, request[3:])
    token = pending.finish(signed, made.tokens, made.id, round)
    assert token is not None
    account = voucher(bytes_of("site", 32), made.id, bytes_of("account", 32))
    ways: list[SigningKey | bytes] = [held.device, bytes_of("code", 16), account]
    return {
        "message": _message(changes, "krr", round, 1, None, round - 1, pending.secret, token),
        "longest": longest_request(made),
        "device": held.device.secret.hex(),
        "salt": salt.hex(),
        "factor": pending.factor.hex(),
        "challenge": made.tokens.challenge(made.id, round).hex(),
        "bound": text(made.tokens.bound(made.id, round)),
        "entitlements": [text(way) for way in ways if isinstance(way, bytes)],
        "asked": [apply_for(made.id, round, request, by, key=made.tokens.key(round)).hex() for by in ways],
        "signed": signed.hex(),
        "token": token.hex(),
    }


# Requests by a relay, and their answers.

EXCHANGES: list[tuple[str, bytes | None, int, BinaryResponse]] = [
    ("/v1/campaigns/meters/round", None, 64, BinaryResponse(200, (("content-type", "application/json"),), b"{}")),
    ("/v1/reports", bytes(range(100)), 448, BinaryResponse(202, (("dovetail-answer", "x" * 100),), b"y" * 300)),
    ("/v1/campaigns/" + "x" * 64, None, 300, BinaryResponse(404)),
]


def _oblivious(path: str, body: bytes | None, pad: int, response: BinaryResponse) -> dict[str, Any]:
    request = padded(oblivious_request("GET" if body is None else "POST", path, body).encode(), pad)
    secret, nonce = bytes_of(f"ephemeral {path}", 32), bytes_of(f"nonce {path}", 16)
    wire, _ = GatewayKey.of(GATEWAY).seal(request, X25519PrivateKey.from_private_bytes(secret))
    opened, pending = Gateway.of([GATEWAY]).open(wire)
    assert opened == request
    return {
        "key": str(GatewayKey.of(GATEWAY)),
        "path": path,
        "body": None if body is None else body.hex(),
        "pad": pad,
        "ephemeral": secret.hex(),
        "wire": wire.hex(),
        "sealed": pending.seal(padded(response.encode(), len(response.encode()) + 9), nonce).hex(),
        "status": response.status,
        "headers": [list(each) for each in response.fields],
        "content": response.content.hex(),
    }


def _sealed(public: bytes, plaintext: bytes, info: bytes, secret: bytes) -> bytes:
    """What pyhpke makes with this ephemeral key: `cryptography` takes none from outside."""
    ephemeral = X25519PrivateKey.from_private_bytes(secret)
    pair = KEMKeyPair(
        KEMKey.from_pyca_cryptography_key(ephemeral), KEMKey.from_pyca_cryptography_key(ephemeral.public_key())
    )
    key = KEMKey.from_pyca_cryptography_key(X25519PublicKey.from_public_bytes(public))
    enc, context = PEER.create_sender_context(key, info, eks=pair)
    return enc + context.seal(plaintext)


def encoded() -> str:
    """`twins.json`."""
    parts = []
    for name, found in vectors().items():
        rows = ",\n".join(json.dumps(row, ensure_ascii=True) for row in found)
        parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def table() -> str:
    """`delivery_table.ts`: the machine of the reference as TypeScript."""

    def union(kind: Any) -> str:
        return " | ".join(json.dumps(name) for name in get_args(kind))

    def words(found: dict[str, str]) -> str:
        return "".join(f"  {name}: {json.dumps(said)},\n" for name, said in found.items())

    rows = "".join(
        f'  "{state} {event}": [{json.dumps(after)}, {json.dumps(list(effects))}],\n'
        for (state, event), (after, effects) in sender.TRANSITIONS.items()
    )
    return f"""/** How a report is delivered: written by `python -m tests.device.vectors.twins` from the reference. */

export type DeliveryState = {union(sender.DeliveryState)};
export type EventName = {union(sender.EventName)};
export type DeliveryEffect = {union(sender.DeliveryEffect)};

/** Refusals after which a report is never sent again, in words. */
export const FINAL: Readonly<Record<string, string>> = {{
{words(sender.FINAL)}}};

/** Refusals after which it is; every other kind counts as `unavailable`. */
export const LATER: Readonly<Record<string, string>> = {{
{words(sender.LATER)}}};

/** "state event" to the next state, and what is to be done; whatever is not listed changes nothing. */
export const TRANSITIONS: Readonly<Record<string, readonly [DeliveryState, readonly DeliveryEffect[]]>> = {{
{rows}}};
"""


if __name__ == "__main__":
    VECTORS.write_text(encoded())
    TABLE.write_text(table())
