"""What `collect query` and `collect status` print besides their tables: each line on what is to be doubted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dovetail.cli.collect import query
from dovetail.cli.collect import query as status
from dovetail.cli.collect.query import NoSuchDocument
from dovetail.cli.main import invoke
from dovetail.collect.analyzer.sentences import doubt
from dovetail.collect.campaign.guarantees import ReleasedBatch

URL = "http://127.0.0.1:8402"
Serve = Callable[..., None]
GROUP: dict[str, Any] = {
    "group": None, "labels": ["no", "yes"], "value": [0.4, 0.6], "standard_error": [0.1, 0.1],
    "interval": [[0.2, 0.6], [0.4, 0.8]], "n": 100,
}  # fmt: skip


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """A server that answers with these documents, by the end of their place."""
    monkeypatch.setenv("DOVETAIL_TOKEN", "token")

    def answer(**documents: Any) -> None:
        class Client:
            def __init__(self, *_: Any, **__: Any) -> None: ...

            def __enter__(self) -> Client:
                return self

            def __exit__(self, *_: object) -> None: ...

            def campaign(self, wanted: str | None) -> str:
                return wanted or "commute"

            def document(self, place: str) -> Any:
                name = "shuffler" if place == "/v1/status" else place.split("/")[4].split("?")[0]
                if name not in documents:
                    raise NoSuchDocument("not found")
                return documents[name]

        for module in (query, status):
            monkeypatch.setattr(module, "ServerClient", Client)

    return answer


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert invoke(["collect", *arguments, URL]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_query_prints_each_warning_below_its_table(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    few = doubt(ReleasedBatch(7, 100, 90, 90, None, 0.0, 40))
    assert few.startswith("Warning: too few messages came in round 7. At most 40 of its")
    document = {"round": 7, "groups": [GROUP], "warnings": [few, "another doubt"]}
    serve(estimates=document, frequencies={**document, "groups": [{**GROUP, "projected": [0.4, 0.6]}]})
    for extra in ([], ["--frequencies"]):
        found = printed(capsys, "query", *extra)
        assert " ".join(few.split()) in found and found.endswith("another doubt")
        assert found.index("60") < found.index("Warning")
    serve(estimates={**document, "warnings": []})
    assert "Warning" not in printed(capsys, "query")
    serve(estimates={"round": 7, "groups": [GROUP]})  # an older analyzer says nothing of it
    assert "Warning" not in printed(capsys, "query")


def test_query_says_which_rounds_of_a_window_have_no_estimate(
    serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = [{**GROUP, "missing": [3, 1]}, {**GROUP, "group": "north", "missing": [3]}]
    serve(estimates={"round": 4}, window={"t": 4, "width": 4, "groups": groups, "warnings": ["a doubt"]})
    found = printed(capsys, "query", "--window", "4")
    assert found.endswith("a doubt without an estimate: round 1, 3")


def test_no_server_can_write_past_its_warning(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    serve(estimates={"round": 1, "groups": [GROUP], "warnings": ["\x1b[2Jall is well\r[bold]"]})
    found = printed(capsys, "query")
    assert "\x1b[2J" not in found and "[bold]" in found


BATCH: dict[str, Any] = {"round": 3, "reports": 120, "n": 90, "rejected": {}, "short": False}
STATUS: dict[str, Any] = {"question": "How?", "minimum": 100, "batches": [BATCH]}
WORDS: dict[str, Any] = {"words": [{"name": "Promise", "figure": "1.5", "meaning": "of one report"}]}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ()),
        ({"followers": None}, ()),
        ({"followers": 0}, ("at most 0 people sent dummies by the rule",)),
        ({"followers": 40}, ("at most 40 people sent dummies by the rule",)),
        ({"short": True}, ("withheld: below the minimum of 100 valid ones",)),
        (
            {"short": True, "followers": 40},
            ("withheld: below the minimum of 100 valid ones; at most 40 people sent dummies",),
        ),
        ({"rejected": {"duplicate": 20, "seal": 10}}, ("20 duplicate, 10 seal",)),
    ],
)
def test_status_says_of_each_batch_what_is_to_be_doubted(
    changes: dict[str, Any], told: tuple[str, ...], serve: Serve, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "240")
    serve(status={**STATUS, "batches": [{**BATCH, **changes}]}, guarantee=WORDS)
    found = printed(capsys, "status")
    assert all(words in found for words in told) and "of one report" in found
    marks = ("withheld", "sent dummies", "duplicate")
    assert [mark in found for mark in marks] == [any(mark in words for words in told) for mark in marks]


def test_status_says_what_keeps_a_shuffler_from_going_on(
    serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "240")
    fine: dict[str, Any] = {
        "id": "commute", "round": 3, "state": "open", "minimum": 50, "waiting": [], "lost": [], "dropped": [],
        "refused": {}, "faulty": [], "refused_batches": [],
    }  # fmt: skip
    bad = {
        **fine, "waiting": [{"round": 1, "reports": 20}], "lost": [{"round": 2, "reports": 10}],
        "dropped": [{"round": 3, "reports": 30}], "refused": {"second_report": 40}, "faulty": [5],
        "refused_batches": [{"round": 6, "kind": "dummies"}],
    }  # fmt: skip
    serve(shuffler={"campaigns": [fine], "batches_waiting": 0, "clock": "trusted"})
    found = printed(capsys, "status")
    assert found.endswith("has not counted yet: 0; reports in tens") and found.count("none") == 4
    serve(shuffler={"campaigns": [bad], "batches_waiting": 2, "clock": "halted"})
    found = printed(capsys, "status")
    for words in (
        "round 1: 20", "round 2: 10", "round 3: 30", "40 second report", "has not counted yet: 2",
        "the shuffler does not believe its clock and releases nothing",
        "round 5 of commute cannot go on; the shuffler's log says why",
        "the analyzer refuses the batch of round 6 of commute: dummies; it is sent again",
    ):  # fmt: skip
        assert words in found, words


def test_a_round_of_which_nothing_is_told_says_why() -> None:
    """As of a regression that noise could make singular."""
    document = {"round": 1, "groups": [], "warnings": ["no coefficients are quoted"]}
    assert [*query._estimates("body", document)] == [("no coefficients are quoted",)]
