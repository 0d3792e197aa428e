"""What is asked of values, and what devices make of them: the part of `twins.json` that is about [asks]."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.device.campaigns import MECHANISMS, bytes_of, campaign

from dovetail.collect.campaign.terms import asked_of
from dovetail.core.question import QUESTIONS, Question
from dovetail.question.distribution import Distribution
from dovetail.question.number import Number
from dovetail.question.shares import Shares
from dovetail_protocol.asked import Asked, Value
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.exact_thresholds import Words

USERS = {
    "randomizer": {"name": "none", "k": 4},
    "promise.trust": "users",
    "promise.assumed_honest": 90,
    "promise.assumed_dishonest": 10,
    "dummies": {"epsilon": 1.0, "delta": 1e-6, "rate": 0.75},
}

ASKED: dict[str, tuple[Question, int | None]] = {
    "shares": (Shares(("a", "b", "c")), None),
    "ends": (Distribution(0.0, 100.0, ends=(0.0, 10.0, 11.0, 100.0)), None),
    "bins": (Distribution(0.1, 7.7, bins=60, levels=3), None),
    "grid": (Number(-1.0, 3.0), 7),
    "as it is": (Number(-1.0, 3.0), None),
    **{
        f"{kind.name} {place}": (one, None)
        for kind in QUESTIONS
        if not kind.of_arrays
        for place, one in enumerate(getattr(kind, "examples", tuple)())
    },
}


def _table(name: str) -> Asked:
    question, k = ASKED[name]
    return asked_of(question, private="first", settings={}, k=k)


def campaign_about(name: str) -> dict[str, Any]:
    """A campaign with this table."""
    asked = _table(name)
    if not asked.symbols:
        taker = {"name": "laplace", "lower": -1.0, "upper": 3.0, "epsilon": 1.0, "grid": 0.25}
    elif len(asked.symbols) == 1:
        taker = {"name": "krr", "k": asked.size, "epsilon": 1.0}
    else:
        taker = {"name": "none", "k": asked.size}
    return _among({"asks": asked.stated(), "randomizer": taker})


def _among(asking: dict[str, Any]) -> dict[str, Any]:
    """Among dummies of people where nothing is randomized."""
    return {**USERS, **asking} if asking["randomizer"]["name"] == "none" else asking


def answered(name: str, words: Words) -> dict[str, Any]:
    """Of a few people what each holds, the symbols made of it, and the byte of the stream after them."""
    asked, drawn = _table(name), []
    for place in range(12):
        held = [_held(one, place) for one in asked.values]
        drawn.append([held, asked.answers(asked.check(held), words), words.bits(8)])
    about = campaign_about(name)
    return {"name": name, "asks": about["asks"], "randomizer": about["randomizer"], "drawn": drawn}


def _held(value: Value, place: int) -> Any:
    """Any category; both ends and the middle of a range, and no answer where there may be none, before others."""
    drawn = int.from_bytes(bytes_of(f"{value.name} {place}", 8))
    if value.categories:
        return value.categories[drawn % len(value.categories)]
    if value.missing and place == 5:
        return None
    part = (0.0, 1.0, 0.5, drawn / 2.0**64)[min(place, 3)]
    return min(value.lower + (value.upper - value.lower) * part, value.upper)


def misasked(name: str, *changes: Any) -> dict[str, Any]:
    """A table with changes, each a place and what it holds now, which the reference refuses."""
    about = campaign_about(name)
    asking = deepcopy({"asks": about["asks"], "randomizer": about["randomizer"]})
    for path, value in zip(changes[::2], changes[1::2], strict=True):
        *way, last = (path if path.startswith("randomizer") else f"asks.{path}").split(".")
        place: Any = asking
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        if value is ...:
            del place[last]
        elif last == "+":
            place.append(value)
        else:
            place[int(last) if last.isdigit() else last] = value
    try:
        campaign(_among(asking))
    except ConfigError:
        return asking
    raise AssertionError(f"{name} may be changed by {changes}")


MISASKED: list[tuple[Any, ...]] = [
    ("grid", "question", ...), ("grid", "question", " "), ("grid", "settings", 3), ("grid", "more", 1),
    ("grid", "values", []), ("grid", "values", {"name": "first"}), ("grid", "values", [3]), ("grid", "symbols", 3),
    ("grid", "symbols", [3]), ("grid", "symbols", [[3]]), ("grid", "symbols", [[]]), ("grid", "symbols", []),
    ("covariance 0", "symbols", []), ("shares", "symbols", []),
    ("grid", "values.+", {"name": "first", "lower": 0, "upper": 1}),
    ("grid", "values.0.name", 3), ("grid", "values.0.name", "other"), ("grid", "values.0.lower", 3.0),
    ("grid", "values.0.lower", True), ("grid", "values.0.upper", -1e308), ("grid", "values.0.missing", ""),
    ("grid", "values.0.missing", "none"), ("grid", "values.0.length", 2), ("grid", "values.0.categories", ["a"]),
    ("shares", "values.0.categories", ["a", "b"]), ("shares", "values.0.categories", ["a", "b", "b"]),
    ("shares", "values.0.lower", 1.0), ("shares", "symbols.0.0.rounding", "even"),
    ("grid", "symbols.0.0.rounding", "list"),
    ("grid", "symbols.0.0.rounding", "nearest"), ("grid", "symbols.0.0.points", 6), ("grid", "symbols.0.0.points", 0),
    ("grid", "symbols.0.0.points", 2.5), ("grid", "symbols.0.0.points", (1 << 24) + 1),
    ("grid", "symbols.0.0.bins", 7),
    ("grid", "symbols.0.0.of", []), ("grid", "symbols.0.0.of", ["second"]), ("grid", "symbols.0.0.of", "first"),
    ("grid", "symbols.0.0.of", ["first"] * 3),
    ("grid", "symbols.0.+", {"of": ["first"], "rounding": "even", "points": 1}),
    ("bins", "symbols.0.0.bins", 61), ("bins", "symbols.0.0.bins", ...), ("bins", "symbols.0.0.of", ["first"] * 2),
    ("ends", "symbols.0.0.ends", [0.0, 11.0, 10.0, 100.0]), ("ends", "symbols.0.0.ends", [0.0, 10.0, 10.0, 100.0]),
    ("ends", "symbols.0.0.ends", [1.0, 10.0, 11.0, 100.0]), ("ends", "symbols.0.0.ends", [0.0, 10.0, 11.0, 99.0]),
    ("ends", "symbols.0.0.ends", [0.0, 10.0, 100.0]), ("ends", "symbols.0.0.ends", [0.0, "1", 11.0, 100.0]),
    ("ends", "symbols.0.0.ends", 3.0), ("ends", "symbols.0.0.ends", ...),
    ("correlation 0", "symbols.0.0.of", ["first", "second"]), ("nonresponse 0", "values.0.missing", ...),
    ("nonresponse 0", "symbols.0.0.rounding", "even"), ("nonresponse 0", "values.0.missing", 3),
    ("covariance 0", "randomizer.k", 8), ("covariance 0", "randomizer.categories", list("abcdefghi")),
    ("as it is", "randomizer.upper", 3.25), ("as it is", "values.0.missing", "none"),
    ("as it is", "randomizer", {"name": "krr", "k": 4, "epsilon": 1.0}),
    ("grid", "randomizer", {"name": "laplace", **MECHANISMS["laplace"]}),
    ("regression 0", "symbols.1.0.of", ["first", "third"]),
    ("as it is", "randomizer.lower", -1.25), ("tables 0", "randomizer", {"name": "krr", "k": 16, "epsilon": 1.0}),
    ("correlation 0", "symbols.0.0.points", 2, "randomizer.k", 8),
    ("nonresponse 0", "symbols.0.0.points", 2, "randomizer.k", 2),
    ("covariance 0", "symbols.0.0.points", 1 << 24, "randomizer.k", 3 << 24),
]  # fmt: skip
UNANSWERED: list[tuple[str, Any]] = [
    ("grid", 3.5), ("grid", "1"), ("grid", True), ("grid", None), ("grid", []), ("grid", [1, 2]), ("grid", [[1]]),
    ("grid", {}), ("grid", {"second": 1}), ("grid", {"first": 1, "second": 1}), ("covariance 0", 1),
    ("covariance 0", [1]), ("covariance 0", [1, 0.5, 0.5]), ("covariance 0", {"first": 1}),
    ("covariance 0", [1, "0.5"]),
    ("shares", "d"), ("shares", 3), ("shares", 1.5), ("shares", None), ("shares", True), ("nonresponse 0", "nothing"),
    ("nonresponse 0", -1), ("tables 0", ["a", "M"]), ("tables 0", ["a", "M", "rich"]),
]  # fmt: skip


def unanswered(name: str, given: Any) -> list[Any]:
    """What is given, which the reference refuses."""
    try:
        _table(name).check(given)
    except DataError:
        return [name, given]
    raise AssertionError(f"{name} takes {given}")
