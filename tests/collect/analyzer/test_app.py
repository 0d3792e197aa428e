"""The analyzer over HTTP: batches, tokens, documents, exports, and the open page."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Any

import httpx
import polars as pl
import pytest
from tests.collect.analyzer.world import LAPLACE, World, batch, campaign, reports_of, seal, token

from dovetail.collect.analyzer.answers import export
from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.tokens import Tokens
from dovetail.core.errors import ConfigError

SECRET = {"Authorization": "Bearer open sesame"}
TOKENS = Tokens((token("somebody else"), token("open sesame")))
ASKED = campaign(minimum=3)
SEALED = seal(ASKED, [0, 1, 2, 3, 3], round=1)
GOOD = batch(ASKED, SEALED)
HERE = "/v1/campaigns/commute"


@pytest.fixture
def world() -> World:
    return World((ASKED, campaign(LAPLACE, id="watts", more="[precision]\nbeta = 0.5\nrho = 0.9")))


class Client:
    """Asks an app without a socket."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._ask("GET", path, **more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._ask("POST", path, **more))

    async def _ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=self._transport, base_url="http://analyzer") as client:
            return await client.request(method, path, **more)


@pytest.fixture
def client(world: World) -> Client:
    return Client(analyzer_app(world.analyzer, tokens=TOKENS, public_page=True))


def problem(answer: Any) -> tuple[str, int]:
    """Kind and status of a problem document."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code and found["title"] and found["detail"]
    return found["type"].removeprefix("urn:dovetail:problem:"), answer.status_code


def test_a_batch_is_acknowledged_alike_each_time(client: Client) -> None:
    answers = [client.post("/v1/batches", content=GOOD) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert answers[0].json()["state"] == "counted" and len(answers[0].json()["batch"]) == 32


def test_a_batch_may_be_streamed(world: World, client: Client) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(GOOD), 7):
            yield GOOD[start : start + 7]

    assert client.post("/v1/batches", content=pieces()).json()["state"] == "counted"
    assert world.answers.latest().n == 5


@pytest.mark.parametrize(
    ("data", "kind", "status"),
    [
        (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), "signature", 403),
        (GOOD[:-1], "malformed", 400),
        (b"", "malformed", 400),
        (GOOD[:4] + b"\7" + GOOD[5:], "version", 400),
        (batch(ASKED, SEALED, rounds=(1001,)), "round", 409),
        (batch(ASKED, SEALED, digest="0" * 64), "campaign", 409),
    ],
)
def test_a_wrong_batch_is_a_problem_and_counted_as_refused(
    client: Client, data: bytes, kind: str, status: int
) -> None:
    assert problem(client.post("/v1/batches", content=data)) == (kind, status)
    assert f'batches_refused_total{{kind="{kind}"}} 1.0' in client.get("/metrics").text
    assert client.get(f"{HERE}/status", headers=SECRET).json()["batches"] == []


NAMES = ("status", "estimates", "estimates/latest", "estimates/1", "window?t=1&w=1", "frequencies", "guarantee")
GUARDED = ["/v1/campaigns", *(f"{HERE}/{name}" for name in (*NAMES, "export.csv", "export.parquet"))]


@pytest.mark.parametrize("path", GUARDED)
def test_queries_need_a_token(client: Client, path: str) -> None:
    client.post("/v1/batches", content=GOOD)
    assert client.get(path, headers=SECRET).status_code == 200
    wrong = [
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Basic open sesame",
        "open sesame",
        f"Bearer {token('open sesame')}",
    ]
    for value in [*wrong, None]:
        answer = client.get(path, headers={} if value is None else {"Authorization": value})
        assert problem(answer) == ("unauthorized", 401) and answer.headers["www-authenticate"] == "Bearer"


def test_without_tokens_nobody_may_ask(world: World) -> None:
    client = Client(analyzer_app(world.analyzer, tokens=Tokens(())))
    assert problem(client.get(GUARDED[0], headers=SECRET)) == ("unauthorized", 401)


def test_token_files_hold_digests_and_labels(tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# subscribers\n{token('a')} dashboard of the city\n\n{token('b')}\n")
    tokens = Tokens.load(path)
    assert [tokens.allow(f"Bearer {each}") for each in "abc"] == [True, True, False]
    assert "digests" not in repr(tokens)
    for wrong in ("secret", token("a")[:-1], token("a").upper(), token("a") + "x"):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match="line 1"):
            Tokens.load(path)
    with pytest.raises(ConfigError, match="no such file"):
        Tokens.load(tmp_path / "none")


def test_the_documents_answer(client: Client) -> None:
    client.post("/v1/batches", content=GOOD)
    ask: Callable[[str], Any] = lambda path: client.get(f"{HERE}/{path}", headers=SECRET).json()  # noqa: E731
    latest = ask("estimates/latest")
    assert latest == ask("estimates/1") and ask("estimates")["estimates"] == [latest]
    assert latest["n"] == 5 and latest["groups"][0]["labels"] == ["bus", "bike", "car", "on foot"]
    assert ask("window?t=1&w=1")["groups"][0]["value"] == latest["groups"][0]["value"]
    assert sum(ask("frequencies?t=1")["groups"][0]["projected"]) == pytest.approx(1.0)
    assert ask("guarantee?t=1")["n"] == 5 and ask("guarantee")["campaign"] == "commute"
    assert [each["campaign"] for each in client.get("/v1/campaigns", headers=SECRET).json()["campaigns"]] == [
        "commute",
        "watts",
    ]


def test_the_requirement_is_broadcast_to_everybody(client: Client) -> None:
    answer = client.get("/v1/campaigns/watts/requirement")
    assert answer.json() == {"campaign": "watts", "beta": 0.5, "rho": 0.9}
    assert problem(client.get(f"{HERE}/requirement")) == ("not_found", 404)


@pytest.mark.parametrize(
    ("path", "kind", "status"),
    [
        ("/v1/campaigns/none/status", "not_found", 404),
        (f"{HERE}/estimates/latest", "not_found", 404),
        (f"{HERE}/estimates/7", "not_found", 404),
        (f"{HERE}/window?t=0&w=1", "malformed", 400),
        (f"{HERE}/window?t=1", "malformed", 400),
        (f"{HERE}/window?t=1&w=-1", "malformed", 400),
        (f"{HERE}/window?t=1&w=%C2%B2", "malformed", 400),
        (f"{HERE}/window?t=1&w=99999999999999999999", "malformed", 400),
        (f"{HERE}/window?t=5&w=3", "not_found", 404),
        (f"{HERE}/frequencies?t=x", "malformed", 400),
        (f"{HERE}/nothing", "not_found", 404),
        ("/v1/batches", "method", 405),
    ],
)
def test_wrong_questions_are_problems(client: Client, path: str, kind: str, status: int) -> None:
    assert problem(client.get(path, headers=SECRET)) == (kind, status)


def test_exports_read_back(client: Client, world: World) -> None:
    client.post("/v1/batches", content=GOOD)
    wanted = export.table(world.answers)
    assert wanted.height == 4 and wanted["n"].to_list() == [5] * 4
    text, binary = (client.get(f"{HERE}/export.{kind}", headers=SECRET) for kind in ("csv", "parquet"))
    assert pl.read_csv(BytesIO(text.content), schema=export.SCHEMA).equals(wanted, null_equal=True)
    assert pl.read_parquet(BytesIO(binary.content)).equals(wanted, null_equal=True)
    estimate = world.answers.latest().by_group[""]
    assert wanted["value"].to_list() == estimate.value.tolist()


def test_an_export_of_nothing_has_its_columns(client: Client) -> None:
    found = pl.read_csv(BytesIO(client.get(f"{HERE}/export.csv", headers=SECRET).content))
    assert found.columns == list(export.SCHEMA) and found.height == 0


def test_health_and_metrics_answer(client: Client, world: World) -> None:
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    client.post("/v1/batches", content=GOOD)
    assert 'reports_counted_total{campaign="commute"} 5.0' in client.get("/metrics").text


def test_the_page_is_open_only_where_that_was_asked_for(world: World, client: Client) -> None:
    client.post("/v1/batches", content=GOOD)
    shown, live = client.get("/"), client.get("/live")
    assert shown.status_code == 200 and live.json()["html"] in shown.text
    closed = Client(analyzer_app(world.analyzer, tokens=TOKENS))
    assert {closed.get(path).status_code for path in ("/", "/live")} == {404}


def test_documents_are_json_even_where_numbers_are_infinite(world: World, client: Client) -> None:
    asked = world.campaigns[1]
    sealed = seal(asked, reports_of(asked, [1.0, 2.0], "two"), round=1)
    client.post("/v1/batches", content=batch(asked, sealed))
    for name in ("estimates/latest", "guarantee", "window?t=1&w=1"):
        answer = client.get(f"/v1/campaigns/watts/{name}", headers=SECRET)
        found = json.loads(answer.text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
        assert answer.status_code == 200 and found
