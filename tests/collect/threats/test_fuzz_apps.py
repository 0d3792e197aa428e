"""Whatever is asked of either app, it answers as one of its documents: no fault, and no status of its own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from tests.collect.analyzer import world as analysis
from tests.collect.shuffler import world as shuffling

from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.tokens import Token, Tokens
from dovetail.collect.http import STATUS, TYPE
from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.service import ShufflerService

SECRET = "sesame"
HERE = "http://127.0.0.1"
FUZZED = settings(max_examples=2 * settings().max_examples, deadline=None, suppress_health_check=list(HealthCheck))
ASKED = analysis.campaign()
SENT = shuffling.campaign()
BATCH = analysis.batch(ASKED, analysis.seal(ASKED, [0, 1, 2, 3], round=1))
MESSAGE = shuffling.message(SENT, shuffling.DEVICES[0])

words = st.sampled_from(
    ["v1", "reports", "batch", "batches", "campaigns", "commute", "rounds", "round", "close", "status", "estimates",
     "latest", "window", "frequencies", "guarantee", "export.csv", "export.parquet", "requirement", "metrics", "live",
     "healthz", "readyz", "1", "0", "9" * 30, "..", "", "%00", "%ff"]
)  # fmt: skip
paths = st.lists(
    words | st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="?#\\"), max_size=8),
    max_size=6,
)
queries = st.dictionaries(st.sampled_from(["t", "w", "x"]), st.text(max_size=12) | st.integers().map(str), max_size=2)
methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
tokens = st.sampled_from([None, f"Bearer {SECRET}", "Bearer x", "Basic eDp5", "Bearer", ""])


def changed(whole: bytes) -> st.SearchStrategy[bytes]:
    """A good body with bytes of it replaced, cut out or added."""
    return st.builds(
        lambda place, cut, put: whole[:place] + put + whole[place + cut :],
        st.integers(0, len(whole)), st.integers(0, 60), st.binary(max_size=60),
    )  # fmt: skip


bodies = st.binary(max_size=300) | changed(BATCH) | changed(MESSAGE)


class Client:
    """An app without a network."""

    def __init__(self, served: Starlette) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(served, raise_app_exceptions=False), base_url=HERE
        )

    def request(self, method: str, path: str, **asked: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **asked))

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@pytest.fixture(scope="module")
def shuffler() -> Iterator[Client]:
    world = shuffling.World(SENT)
    service = ShufflerService(world.shuffler, world.clock)
    service.start()
    client = Client(shuffler_app(service))
    yield client
    client.close()
    service.stop()


@pytest.fixture(scope="module")
def analyzer() -> Iterator[Client]:
    world = analysis.World((ASKED,))
    client = Client(analyzer_app(world.analyzer, tokens=Tokens((Token(analysis.token(SECRET)),)), public_page=True))
    yield client
    client.close()


def check(
    client: Client, method: str, path: list[str], query: dict[str, str], token: str | None, body: bytes
) -> None:
    headers = {} if token is None else {"Authorization": token}
    answer = client.request(method, f"{HERE}/{'/'.join(path)}", params=query, headers=headers, content=body)
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        if method != "HEAD":
            document = json.loads(answer.content)
            kind = document["type"].removeprefix(TYPE)
            assert STATUS[kind] == document["status"] == answer.status_code != 500
            assert SECRET not in answer.text
    else:
        assert answer.status_code in (200, 202)


@FUZZED
@given(method=methods, path=paths, query=queries, token=tokens, body=bodies)
def test_the_shuffler_answers_whatever_it_is_asked(
    shuffler: Client, method: str, path: list[str], query: dict[str, str], token: str | None, body: bytes
) -> None:
    check(shuffler, method, path, query, token, body)


@FUZZED
@given(method=methods, path=paths, query=queries, token=tokens, body=bodies)
def test_the_analyzer_answers_whatever_it_is_asked(
    analyzer: Client, method: str, path: list[str], query: dict[str, str], token: str | None, body: bytes
) -> None:
    check(analyzer, method, path, query, token, body)


@FUZZED
@given(body=bodies, together=st.booleans())
def test_no_body_breaks_the_shuffler(shuffler: Client, body: bytes, together: bool) -> None:
    check(shuffler, "POST", ["v1", "reports", *(["batch"] if together else [])], {}, None, body)


@pytest.mark.exhaust
@FUZZED
@given(body=bodies)
def test_no_body_breaks_the_analyzer_and_none_but_the_signed_one_counts(analyzer: Client, body: bytes) -> None:
    check(analyzer, "POST", ["v1", "batches"], {}, None, body)
    asking = {"Authorization": f"Bearer {SECRET}"}
    told = analyzer.request("GET", "/v1/campaigns/commute/status", headers=asking).json()["batches"]
    assert [batch["n"] for batch in told] in ([], [4])


def test_bodies_without_end_leave_nothing_behind(analyzer: Client, shuffler: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield os.urandom(1 << 14)

    for client, place in ((analyzer, "/v1/batches"), (shuffler, "/v1/reports")):
        assert client.request("POST", place, content=endless()).status_code in (400, 413)
