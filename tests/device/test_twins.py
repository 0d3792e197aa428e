"""The device in TypeScript is the reference's twin: committed vectors are current, and both read every file alike."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.browser import needs_chromium
from tests.device.campaigns import changed, document, keys, toml
from tests.device.test_campaign import VALUES
from tests.device.vectors import asking, twins
from tests.node import CLIENT, ESBUILD, Node, needs_client
from tests.waiting import PATIENCE

from dovetail_protocol.asked import Asked, AskedTogether
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.dummies import DigitsRule, DummiesRule
from dovetail_protocol.errors import DovetailError
from dovetail_protocol.messages import Answer, answer_header, make_answer, read_answer_header

JUDGE = CLIENT / "test" / "judge.mjs"
SIGNING = keys().shuffler_signing


def test_the_vectors_are_what_the_reference_does() -> None:
    assert twins.VECTORS.read_text() == twins.encoded(), "python -m tests.device.vectors.twins writes them anew"
    assert twins.VECTORS.stat().st_size < 445_000


def test_the_delivery_of_the_twin_is_the_machine_of_the_reference() -> None:
    assert twins.TABLE.read_text() == twins.table(), "python -m tests.device.vectors.twins writes it anew"


def test_no_randomness_but_the_platforms_and_no_local_storage_stands_in_the_published_files() -> None:
    for path in sorted((CLIENT / "src").glob("*.ts")):
        code = "\n".join(
            line for line in path.read_text().splitlines() if not line.lstrip().startswith(("//", "*", "/*"))
        )
        for banned in ("Math.random", "localStorage.", "seed =", "eval(", "Math.exp"):
            assert banned not in code, f"{path.name}: {banned}"


def test_no_address_of_a_registry_and_no_script_of_an_installation_is_committed() -> None:
    lock = (CLIENT / "package-lock.json").read_text()
    assert '"resolved"' not in lock and lock.count('"integrity"') > 3
    assert "ignore-scripts=true" in (CLIENT / ".npmrc").read_text()


@pytest.fixture(scope="module")
def judge() -> Iterator[Node]:
    with Node(JUDGE) as started:
        yield started


# What TOML 1.1 adds, which the parser of the twin takes and that of the reference does not.
NEWER_TOML = re.compile(r"^\ufeff|\\[xe]|,\s*\}|\{[^}]*\n|\d\d:\d\d([^:\d]|$)", re.MULTILINE)


def _said(signed: bytes) -> dict[str, Any]:
    """What the reference makes of a file, in the words of `judge.mjs`."""
    try:
        found = Campaign.parse(signed)
    except DovetailError:
        return {"refused": "config"}
    if twins.left_out(found):
        return {"refused": "unsupported"}
    schedule, batch, promise = found.schedule, found.batch, found.promise
    expires, tokens = found.expires, found.tokens
    start = None if schedule.start is None else schedule.start.timestamp()
    return {
        "id": found.id,
        "version": found.version,
        "question": found.question,
        "digest": found.digest.hex(),
        "mechanism": found.mechanism.name,
        "k": getattr(found.mechanism, "k", None),
        "epsilon": None if found.open else found.mechanism.epsilon,
        "charged": found.charged,
        "categories": list(found.categories),
        "groups": list(found.groups),
        "schedule": [start, schedule.period, schedule.count, schedule.grace],
        "batch": [batch.minimum, batch.small, batch.late, batch.close_at],
        "promise": [
            *(promise.delta, promise.assumed_honest, promise.assumed_dishonest),
            *(promise.authentication, promise.device_budget, promise.trust),
        ],
        "expires": None if expires is None else expires.timestamp(),
        "endpoints": found.endpoints,
        "ohttp": None if found.ohttp is None else [found.ohttp.relay, found.ohttp.pad, len(found.ohttp.keys)],
        "tokens": tokens and [tokens.issuer, tokens.url, [str(key) for key in tokens.keys]],
        "asked": found.asked and [found.symbols, found.asked.digits, *_told(found.asked)],
        "added": found.dummies and _added(found.dummies),
        "classes": [[each.name, each.epsilon] for each in found.classes],
        "memoized": found.memoized,
    }


def _added(rule: DummiesRule) -> list[Any]:
    """Dummies of the shuffler as the file states them."""
    reaches = list(rule.reaches) if isinstance(rule, DigitsRule) else []
    variance = None if rule.variance is None else str(rule.variance)
    return [rule.epsilon, rule.delta, list(rule.by_chance or ()), reaches, 0 if reaches else rule.reach, variance]


def _told(asked: Asked | AskedTogether) -> list[Any]:
    """Which symbols a person makes of what, and how, but for settings, which devices do not read."""
    if isinstance(asked, AskedTogether):
        return [asked.question, [_told(one) for one in asked.each]]
    names = [one.name for one in asked.values]
    values = [
        {
            "name": one.name,
            "categories": list(one.categories),
            "lower": one.lower,
            "upper": one.upper,
            "missing": one.missing,
            "length": one.length,
        }
        for one in asked.values
    ]
    symbols = [
        [
            {**asdict(part), "of": [names.index(name) for name in part.of], "ends": list(part.ends)}
            for part in each.parts
        ]
        for each in asked.symbols
    ]
    return [asked.question, values, symbols]


def agree(judge: Node, body: bytes) -> None:
    """Both take the file of an owner who signs anything, and read the same, or both refuse it."""
    signed = twins.signed_by(body, keys().owner)
    expected, found = _said(signed), judge.ask({"campaign": signed.hex()})
    if expected.get("refused") and found.get("refused") in ("config", "unsupported"):
        return
    if expected.get("refused") and NEWER_TOML.search(body.decode()):
        return  # no shuffler serves it, so that no device meets it
    assert found == expected, body


TABLES = (
    "tables 0",
    "covariance 0",
    "nonresponse 0",
    "ends",
    "as it is",
    "digits",
    "vector 0",
    "joint",
    "one",
    "combined",
)
ASKING = [asking.campaign_about(name) for name in TABLES]
SHUFFLED = [
    {**twins.ADDED, "dummies": {**twins.ADDED["dummies"], "variance": "1715/4"}},
    {**twins.ADDED, "randomizer": {"name": "none", "k": 4}, "dummies": twins.SPARSE},
    {"shuffle": twins.ORDERED, "memoize": twins.MEMOIZED},
]
CHANGES = [*twins.TAKEN[:9], twins.WITH_TOKENS, *ASKING, *SHUFFLED]
BASES = [toml(document(name="window")), *(twins._changed(each) for each in CHANGES)]
PIECES = [
    *('"', "'", '"""', "'''"),
    *("[", "]", "[[", "]]", "{", "}", "=", ".", ",", "#", "\\", "\n", "\r\n", "\r", "\t", " "),
    *("\\u0041", "\\ud800", "\\U0001F600", "\\x41", "\\e", "\\\n "),
    *("_", "0x10", "0b1", "0o7", "+1", "-0", "1e3", "1.", ".5"),
    *("inf", "nan", "true", "07", "1_000", "1__0"),
    *("\x00", "\x7f", "\x1f", "\x85", "\ufeff", "\u2028", "é", "\U0001f600"),
    *("2030-01-01", "2030-01-01T00:00:00Z", "2030-01-01 00:00z", "2030-02-30T00:00:00Z", "23:59:60", "24:00:00"),
    *("0000-01-01T00:00:00Z", "T", "z", "+24:00", "-00:60", ".1234567", "__proto__", "constructor"),
    *("a.b = 1\n", "x = {y = 1,}\n"),
    *("of", "points", "bins = 5, ", "'first'", "missing", "[[]]", "-1", "'even'", "'gaps'"),
    *("'digits'", "length = 3", "27", "81", "kept = 0.5\n", "variance = '3/7'\n"),
    *("'6/4'", "reaches = [3, 2]\n", "'none'"),
    *("'joint'", "{}", "each", "parts", "d = 3", "'closest_direction'", "'mallows'", "trust = 'shuffler'\n"),
    *("[memoize]\n", "constant_values = true\n", "memoize = {}\n"),
    *("[randomizer]\n", "[keys.x]\n", "epsilon = 8\n", '"epsilon" = 8\n', "'id' = 'x'\n", "randomizer.epsilon = 8\n"),
]  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good file with some of its text cut, copied or replaced."""
    body = draw(st.sampled_from(BASES)).decode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.sampled_from([0, 0, 1, 2, 7, 40])))
        piece = draw(
            st.sampled_from(PIECES)
            | st.characters(max_codepoint=0x2FFF, codec="utf-8")
            | st.just(body[end - 9 : end])
        )
        body = body[:start] + piece + body[end:]
    return body.encode()


WRITTEN = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.exhaust
@needs_client
@WRITTEN
@given(body=mutated())
def test_both_languages_take_and_read_the_same_changed_files(judge: Node, body: bytes) -> None:
    agree(judge, body)


@pytest.mark.exhaust
@needs_client
@WRITTEN
@given(data=st.data())
def test_both_languages_take_and_read_the_same_values(judge: Node, data: st.DataObject) -> None:
    asked = document(name=data.draw(st.sampled_from(["krr", "unary", "laplace", "window", "subset_selection"])))
    paths = [
        f"{name}.{key}" if isinstance(table, dict) else name
        for name, table in asked.items()
        for key in (table if isinstance(table, dict) else [name])
    ]
    for path in data.draw(st.lists(st.sampled_from(paths), min_size=1, max_size=2, unique=True)):
        asked = changed(asked, path, data.draw(VALUES))
    agree(judge, toml(asked))


@pytest.mark.exhaust
@needs_client
@WRITTEN
@given(
    place=st.integers(0, 140),
    byte=st.integers(0, 255),
    kind=st.sampled_from(["accepted", "campaign", "late", "x" * 65]),
)
def test_both_languages_believe_the_same_answers(judge: Node, place: int, byte: int, kind: str) -> None:
    wire = b"DVTL" + bytes(60)
    answer = make_answer(Answer(kind, 7), wire, SIGNING)
    answer = answer[:place] + bytes([byte]) + answer[place + 1 :] if place < len(answer) else answer
    header = answer_header(answer)
    expected = read_answer_header(header, wire, SIGNING.verifying_key())
    found = judge.ask({"header": header, "wire": wire.hex(), "key": SIGNING.verifying_key().public.hex()})
    assert found == (None if expected is None else {"kind": expected.kind, "after": expected.after})


@pytest.mark.exhaust
@needs_client
@needs_chromium
def test_chromium_makes_every_byte_of_the_reference(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra test")
    script = tmp_path / "vectors.js"
    command = [ESBUILD, "test/chromium.mjs", "--bundle", f"--outfile={script}"]
    subprocess.run([*command, "--log-level=warning"], cwd=CLIENT, check=True)
    with sync_api.sync_playwright() as program:
        browser = program.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.route("https://vectors.test/", lambda asked: asked.fulfill(body="<title>vectors</title>"))
        page.goto("https://vectors.test/")  # a page that may do cryptography
        page.add_script_tag(content=script.read_text())
        vectors = json.loads(twins.VECTORS.read_text())
        assert page.evaluate("vectors => differences(vectors)", vectors) == []
        vectors["messages"][0]["id"] = "00" * 16  # and what differs is found
        assert page.evaluate("vectors => differences(vectors)", vectors) == ["message 1"]
        browser.close()
