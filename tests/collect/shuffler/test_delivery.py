"""A batch on its way: what counts as delivered, what as refused, and how long until the next try."""

import httpx
import pytest

from dovetail.collect.http.problems import STATUS
from dovetail.collect.shuffler.delivery import HttpAnalyzerTransport, NotDelivered, backoff
from dovetail.core.entropy import simulation


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
