"""A batch on its way: what counts as delivered, what as refused, and how long until the next try."""

import ast
import re
import socket
from contextlib import suppress
from pathlib import Path
from threading import Thread

import httpx
import pytest

import dovetail
from dovetail.collect.http import STATUS
from dovetail.collect.shuffler.delivery import HttpAnalyzerTransport, NotDelivered, backoff
from dovetail.core.entropy import simulation

CLIENTS = {"Client", "AsyncClient", "get", "post", "put", "request", "stream", "head", "delete", "patch"}


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(503),
        httpx.Response(200, json={"batch": "another", "state": "counted"}),
        httpx.Response(200, json={"batch": "abcd", "state": "open"}),
        httpx.Response(200, content=b"<html>"),
        httpx.Response(302, headers={"location": "http://elsewhere/"}),
        httpx.ConnectError("no route"),
        httpx.ReadTimeout("slow"),
    ],
    ids=str,
)
def test_only_the_analyzers_word_makes_a_batch_delivered(answer):
    def handle(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.Client(transport=httpx.MockTransport(handle))
    with pytest.raises(NotDelivered):
        HttpAnalyzerTransport("http://analyzer", client).send("abcd", b"abcd", iter([b"body"]))


def hang_up(listener, heard):
    """Close whatever connects, and note it."""
    with suppress(OSError):
        while True:
            listener.accept()[0].close()
            heard.append("a connection")


def test_no_proxy_of_the_environment_ever_hears_of_a_batch(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as proxy, socket.create_server(("127.0.0.1", 0)) as nobody:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            for spelled in (name, name.upper()):
                monkeypatch.setenv(spelled, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        Thread(target=hang_up, args=(proxy, heard := []), daemon=True).start()
        port = nobody.getsockname()[1]
        nobody.close()
        for scheme in ("http", "https"):
            with pytest.raises(NotDelivered) as found:
                HttpAnalyzerTransport(f"{scheme}://127.0.0.1:{port}").send("abcd", b"abcd", iter([b"body"]))
            assert found.value.kind == "unreachable"
        assert heard == []
        proxy.shutdown(socket.SHUT_RDWR)


def test_no_client_of_the_service_asks_the_environment_for_a_proxy():
    """Wherever a client of httpx is made, or one of its functions called that makes one."""
    root = Path(dovetail.__file__).parent
    made = [
        (path.relative_to(root), call)
        for path in sorted(root.rglob("*.py"))
        if "httpx" in (source := path.read_text(encoding="utf-8"))
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call) and re.search(r"httpx\.(Async)?[a-zA-Z]*$", ast.unparse(call.func))
        if ast.unparse(call.func).rpartition(".")[2] in CLIENTS
    ]
    assert len(made) == 4
    for path, call in made:
        told = {each.arg: ast.unparse(each.value) for each in call.keywords}
        assert told.get("trust_env") == "False", path


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (
            httpx.Response(503, json={"type": "urn:dovetail:problem:unavailable", "status": 503, "detail": ""}),
            503,
            "unavailable",
        ),
        (
            httpx.Response(400, json={"type": "urn:dovetail:problem:Hello World", "status": 400, "detail": ""}),
            400,
            "unknown",
        ),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), 0, "untrusted"),
        (httpx.ConnectError("no route"), 0, "unreachable"),
    ],
)
def test_a_batch_that_is_not_delivered_says_why(answer, status, kind):
    def handle(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.Client(transport=httpx.MockTransport(handle))
    with pytest.raises(NotDelivered) as found:
        HttpAnalyzerTransport("http://analyzer", client).send("abcd", b"abcd", iter([b"body"]))
    assert (found.value.status, found.value.kind) == (status, kind)


def test_a_batch_is_streamed_to_the_place_where_batches_go():
    seen = []

    def handle(request):
        seen.append((request.url.path, request.headers["transfer-encoding"], request.read()))
        return httpx.Response(200, json={"batch": "abcd", "state": "counted"})

    client = httpx.Client(transport=httpx.MockTransport(handle))
    HttpAnalyzerTransport("http://analyzer/", client).send("abcd", b"head", iter([b"one", b"two"]))
    assert seen == [("/v1/batches", "chunked", b"headonetwo")]


def answering(*answers):
    """A transport to an analyzer that says this, request by request; what it was asked."""
    seen, left = [], list(answers)

    def handle(request):
        seen.append((request.method, request.url.path, request.read()))
        return left.pop(0)

    client = httpx.Client(transport=httpx.MockTransport(handle))
    return HttpAnalyzerTransport("http://analyzer/", client), seen


def test_a_batch_in_parts_is_put_by_its_manifest_and_then_part_by_part():
    told = {"batch": "abcd", "state": "incomplete", "missing": [1, 4]}
    kept = {"batch": "abcd", "part": 4, "state": "kept"}
    transport, seen = answering(*(httpx.Response(200, json=each) for each in (told, kept)))
    assert transport.offer("abcd", b"manifest") == [1, 4]
    transport.send_part("abcd", 4, b"body")
    assert seen == [("PUT", "/v1/batches/abcd", b"manifest"), ("PUT", "/v1/batches/abcd/parts/4", b"body")]


def test_an_analyzer_that_has_counted_a_batch_lacks_no_part():
    transport, _ = answering(httpx.Response(200, json={"batch": "abcd", "state": "counted"}))
    assert transport.offer("abcd", b"manifest") == []


@pytest.mark.parametrize(
    "document",
    [
        {"batch": "abcd", "state": "incomplete", "missing": []},
        {"batch": "abcd", "state": "incomplete", "missing": [-1]},
        {"batch": "abcd", "state": "incomplete", "missing": [True]},
        {"batch": "abcd", "state": "incomplete", "missing": "all"},
        {"batch": "abcd", "state": "incomplete"},
        {"batch": "other", "state": "incomplete", "missing": [1]},
        {"batch": "other", "state": "counted"},
        [],
        None,
    ],
)
def test_whatever_else_is_said_of_parts_delivers_nothing(document):
    for ask in (lambda t: t.offer("abcd", b"manifest"), lambda t: t.send_part("abcd", 1, b"body")):
        transport, _ = answering(httpx.Response(200, json=document))
        with pytest.raises(NotDelivered) as found:
            ask(transport)
        assert not found.value.refused


@pytest.mark.parametrize("kind", ["not_found", "method"])
def test_an_analyzer_that_knows_no_parts_is_told_from_one_that_waits_for_none(kind):
    document = {"type": f"urn:dovetail:problem:{kind}", "status": STATUS[kind], "detail": ""}
    transport, _ = answering(*[httpx.Response(STATUS[kind], json=document)] * 2)
    with pytest.raises(NotDelivered) as old:
        transport.offer("abcd", b"manifest")
    assert (old.value.status, old.value.kind, old.value.refused) == (400, "version", True)
    with pytest.raises(NotDelivered) as gone:
        transport.send_part("abcd", 1, b"body")
    assert gone.value.refused == (kind == "method")


def test_only_the_analyzers_own_word_is_a_refusal():
    def refused(answer):
        client = httpx.Client(transport=httpx.MockTransport(lambda _: answer))
        with pytest.raises(NotDelivered) as found:
            HttpAnalyzerTransport("http://analyzer", client).send("abcd", b"abcd", iter([b"body"]))
        return found.value.refused

    def problem(kind, status=None):
        document = {"type": f"urn:dovetail:problem:{kind}", "status": status or STATUS[kind], "detail": ""}
        return httpx.Response(status or STATUS[kind], json=document)

    final = [kind for kind in STATUS if refused(problem(kind))]
    assert final and {"round", "content", "campaign", "malformed", "signature"} <= set(final)
    assert not {"unavailable", "fault", "timeout", "rate_limited"} & set(final)
    assert not refused(httpx.Response(404, content=b"<html>")), "a proxy's word, not the analyzer's"
    assert not refused(problem("round", 503)) and not NotDelivered().refused


def test_the_pause_between_tries_grows_and_is_never_the_same():
    pauses = [backoff(tries, simulation(tries)) for tries in range(1, 40)]
    assert len(set(pauses)) == len(pauses)
    assert all(0.0 < pause <= min(300.0, 2.0 ** (tries - 1)) for tries, pause in enumerate(pauses, start=1))
