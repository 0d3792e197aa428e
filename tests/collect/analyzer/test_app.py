"""The analyzer over HTTP: batches, tokens, documents, exports, and the open page."""

import asyncio
import csv
import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from io import BytesIO, StringIO
from typing import Any

import httpx
import polars as pl
import pytest
from tests.collect.analyzer.world import LAPLACE, World, batch, campaign, reports_of, seal, token

from dovetail.cli.main import invoke
from dovetail.collect.analyzer import answers as export
from dovetail.collect.analyzer.app import analyzer_app
from dovetail.collect.analyzer.tokens import LiveTokens, Token, Tokens
from dovetail.core.errors import ConfigError
from dovetail_protocol.terminal_text import is_harmless, printable

SECRET = {"Authorization": "Bearer open sesame"}
TOKENS = Tokens((Token(token("somebody else")), Token(token("open sesame"))))
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

    def put(self, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._ask("PUT", path, **more))

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
    assert [tokens.find(f"Bearer {each}", now=0.0) is not None for each in "abc"] == [True, True, False]
    assert token("a") not in repr(tokens)
    for wrong in ("secret", token("a")[:-1], token("a").upper(), token("a") + "x"):
        path.write_text(wrong)
        with pytest.raises(ConfigError, match="line 1"):
            Tokens.load(path)
    with pytest.raises(ConfigError, match="no such file"):
        Tokens.load(tmp_path / "none")


@pytest.mark.exhaust
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
    assert pl.read_csv(BytesIO(text.content), schema=export.schema()).equals(wanted, null_equal=True)
    assert pl.read_parquet(BytesIO(binary.content)).equals(wanted, null_equal=True)
    estimate = world.answers.latest().by_group[""]
    assert wanted["value"].to_list() == estimate.value.tolist()


def test_a_cell_that_a_spreadsheet_would_run_is_a_text_and_numbers_stay_numbers() -> None:
    """Categories and groups are the owner's words; who opens the file has not agreed to run them."""
    run = ["=1+1", "+1 (555)", "-1+1", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x")', " =1+1", "＝1+1", "＠SUM(A1)"]
    names = [*run, "-5", "+0.5", "plain", "7"]
    rows = [(1, name, name, 5, -1.5, 0.1, 0.1, -2.0, -1.0, 0.0) for name in names]
    text = export.as_csv(pl.DataFrame(rows, schema=export.schema(), orient="row"))
    found = list(csv.reader(StringIO(text.decode(), newline="")))[1:]
    shown = [name.replace("\t", r"\t").replace("\r", r"\r") for name in run]
    assert [row[2] for row in found] == [f"'{name}" for name in shown] + names[len(run) :]
    for row in found:
        assert row[1] == row[2] and [row[4], row[7], row[8]] == ["-1.5", "-2.0", "-1.0"]
        assert all(cell[:1] not in "=+-@\t\r" or re.fullmatch(r"[+-]?[\d.]+", cell) for cell in row)
    assert pl.read_csv(BytesIO(text), schema=export.schema())["value"].to_list() == [-1.5] * len(names)


def test_a_cell_writes_nothing_on_the_terminal_that_shows_it() -> None:
    names = ["safe\x1b[2J", "\x9b2J", "a\nb", "\u202egnp.exe", "\0=1+1", "naïve", "क्‍ष"]
    rows = [(1, name, name, 5, -1.5, 0.1, 0.1, -2.0, -1.0, 0.0) for name in names]
    text = export.as_csv(pl.DataFrame(rows, schema=export.schema(), orient="row")).decode()
    assert all(is_harmless(letter) for line in text.split("\n") for letter in line)
    assert [row[2] for row in csv.reader(StringIO(text))][1:] == [printable(name) for name in names]


def test_an_export_of_nothing_has_its_columns(client: Client) -> None:
    found = pl.read_csv(BytesIO(client.get(f"{HERE}/export.csv", headers=SECRET).content))
    assert found.columns == list(export.schema()) and found.height == 0


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


@pytest.mark.exhaust
def test_documents_are_json_even_where_numbers_are_infinite(world: World, client: Client) -> None:
    asked = world.campaigns[1]
    sealed = seal(asked, reports_of(asked, [1.0, 2.0], "two"), round=1)
    client.post("/v1/batches", content=batch(asked, sealed))
    for name in ("estimates/latest", "guarantee", "window?t=1&w=1"):
        answer = client.get(f"/v1/campaigns/watts/{name}", headers=SECRET)
        found = json.loads(answer.text, parse_constant=pytest.fail)  # NaN and Infinity are no JSON
        assert answer.status_code == 200 and found


def live(world: World, path: Any, *lines: str) -> Client:
    path.write_text("".join(line + "\n" for line in lines))
    return Client(analyzer_app(world.analyzer, tokens=LiveTokens(path)))


def test_a_token_that_is_withdrawn_is_refused_without_a_restart(world: World, tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    client = live(world, path, token("a") + " me", token("open sesame") + " you")
    assert client.get(GUARDED[0], headers=SECRET).status_code == 200
    Tokens.load(path).without("you").save(path)
    assert problem(client.get(GUARDED[0], headers=SECRET)) == ("unauthorized", 401)
    Tokens.load(path).with_token(Token(token("open sesame"), "you")).save(path)
    assert client.get(GUARDED[0], headers=SECRET).status_code == 200


@pytest.mark.parametrize("spoil", ["gone", "wrong"])
def test_while_the_tokens_cannot_be_read_nobody_may_ask(world: World, tmp_path: Any, spoil: str) -> None:
    path = tmp_path / "tokens"
    client = live(world, path, token("open sesame"))
    path.write_text("half a li") if spoil == "wrong" else path.unlink()
    for _ in range(2):
        assert problem(client.get(GUARDED[0], headers=SECRET)) == ("unauthorized", 401)
    path.write_text(token("open sesame"))
    assert client.get(GUARDED[0], headers=SECRET).status_code == 200


def test_a_token_ends_when_it_expires(world: World, tmp_path: Any) -> None:
    ends = datetime.fromtimestamp(world.clock.now() + 60.0, UTC)
    client = live(world, tmp_path / "tokens", Token(token("open sesame"), "me", ends).write())
    assert client.get(GUARDED[0], headers=SECRET).status_code == 200
    world.clock.advance(60.0)
    assert problem(client.get(GUARDED[0], headers=SECRET)) == ("unauthorized", 401)


def test_a_token_reads_the_campaigns_of_its_scope_and_no_other(world: World, tmp_path: Any) -> None:
    client = live(world, tmp_path / "tokens", f"{token('open sesame')} campaigns=watts me")
    client.post("/v1/batches", content=GOOD)
    listed = client.get("/v1/campaigns", headers=SECRET).json()["campaigns"]
    assert [each["campaign"] for each in listed] == ["watts"]
    assert client.get("/v1/campaigns/watts/status", headers=SECRET).status_code == 200
    for path in GUARDED[1:]:
        assert problem(client.get(path, headers=SECRET)) == ("not_found", 404)


@pytest.mark.parametrize(
    "words",
    ["expires=soon", "expires=2030-01-31", "expire=2030-01-31T00:00:00+00:00", "campaigns=", "campaigns=a,,b"],
)
def test_a_token_with_a_setting_that_is_not_understood_lets_nobody_in(tmp_path: Any, words: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{token('a')} {words} me\n")
    with pytest.raises(ConfigError, match="line 1: must be the SHA-256"):
        Tokens.load(path)


def test_tokens_are_made_listed_and_withdrawn_by_their_verbs(tmp_path: Any, capsys: Any) -> None:
    file, out = tmp_path / "tokens.txt", tmp_path / "token.txt"
    make = ["collect", "token", "add", str(file), "--label", "city board", "--campaign", "commute", "--out", str(out)]
    assert invoke(make) == 0
    assert invoke([*make[:-1], str(tmp_path / "other.txt")]) == 2 and not (tmp_path / "other.txt").exists()
    secret = out.read_text().strip()
    assert out.stat().st_mode & 0o777 == 0o600 and secret not in file.read_text()
    (made,) = Tokens.load(file).tokens
    assert made.digest == token(secret) and made.label == "city board" and made.campaigns == {"commute"}
    assert made.expires is not None and not made.valid(made.expires.timestamp())
    capsys.readouterr()
    assert invoke(["collect", "token", "list", str(file)]) == 0
    told = capsys.readouterr().out
    assert "city board: commute, until 2" in told and secret not in told and made.digest not in told
    assert invoke(["collect", "token", "withdraw", str(file), "city board"]) == 0
    assert Tokens.load(file).tokens == ()
    assert invoke(["collect", "token", "withdraw", str(file), "city board"]) == 2
