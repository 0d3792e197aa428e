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
from dovetail_protocol.asked import TOGETHER as WAYS
from dovetail_protocol.asked import Asked, AskedTogether, Value
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.exact_thresholds import Words

USERS: dict[str, Any] = {
    "randomizer": {"name": "none", "k": 4},
    "promise.trust": "users",
    "promise.assumed_honest": 90,
    "promise.assumed_dishonest": 10,
    "dummies": {"epsilon": 1.0, "delta": 1e-6, "rate": 0.75},
}

SHUFFLER: dict[str, Any] = {
    "promise.trust": "shuffler",
    "dummies": {"epsilon": 1.0, "delta": 1e-6, "variance": "1715/4", "reaches": [30, 20, 10, 7]},
}
DIGITS = {"digits": 4}  # in which a number is sent, by table
TOGETHER: dict[str, tuple[str, dict[str, Any]]] = {  # several questions: a table, and by what
    "way": ("shares", {"name": "krr", "k": 3, "epsilon": 0.1}),
    "minutes": ("as it is", {"name": "laplace", "lower": -1.0, "upper": 3.0, "epsilon": 0.2, "grid": 0.25}),
    "first": ("covariance 0", {"name": "unary", "k": 9, "epsilon": 1.5}),
}

ASKED: dict[str, tuple[Question, int | None]] = {
    "shares": (Shares(("a", "b", "c")), None),
    "ends": (Distribution(0.0, 100.0, ends=(0.0, 10.0, 11.0, 100.0)), None),
    "bins": (Distribution(0.1, 7.7, bins=60, levels=3), None),
    "grid": (Number(-1.0, 3.0), 7),
    "as it is": (Number(-1.0, 3.0), None),
    "digits": (Number(-1.0, 3.0), None),
    **{
        f"{kind.name} {place}": (one, None)
        for kind in QUESTIONS
        for place, one in enumerate(getattr(kind, "examples", tuple)())
    },
}
COMBINED = {"way": "shares", "first": "covariance 0", "age": "ends"}  # in one symbol, among dummies


def _table(name: str, private: str = "first") -> Asked | AskedTogether:
    if name == "combined":
        return AskedTogether.combined(tuple(_one(table, private) for private, table in COMBINED.items()))
    if name in WAYS:
        return AskedTogether(tuple(_one(table, private) for private, (table, _) in TOGETHER.items()), name)
    return _one(name, private)


def _one(name: str, private: str) -> Asked:
    question, k = ASKED[name]
    return asked_of(question, private=private, settings={}, k=k, digits=DIGITS.get(name, 0))


def campaign_about(name: str) -> dict[str, Any]:
    """A campaign with this table."""
    asked, taker = _table(name), dict[str, Any]()
    if isinstance(asked, AskedTogether) and not asked.symbols:
        taker = {"name": name, "parts": [by for _, by in TOGETHER.values()]}
        taker |= {"weights": [700, 400, 1000]} if name == "one" else {}
    elif asked.values[0].length:
        taker = {"name": "closest_direction", "d": asked.values[0].length, "radius": 1.5, "epsilon": 2.0, "axes": 3}
    elif not asked.symbols:
        taker = {"name": "laplace", "lower": -1.0, "upper": 3.0, "epsilon": 1.0, "grid": 0.25}
    elif asked.sent == 1 and not asked.digits and name != "combined":
        taker = {"name": "krr", "k": asked.size, "epsilon": 1.0}
    else:
        taker = {"name": "none", "k": asked.size}
    return _among({"asks": asked.stated(), "randomizer": taker}, name)


def _among(asking: dict[str, Any], name: str) -> dict[str, Any]:
    """Among dummies of people, or of the shuffler, where nothing is randomized."""
    if asking["randomizer"]["name"] != "none":
        return asking
    return {**(SHUFFLER if name in DIGITS else USERS), **asking}


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
    if value.length:
        return [0.0 if place == 0 else drawn / 2.0**63 - 1.0 + number / 3 for number in range(value.length)]
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
            del place[int(last) if last.isdigit() else last]
        elif last == "+":
            place.append(value)
        else:
            place[int(last) if last.isdigit() else last] = value
    try:
        campaign(_among(asking, name))
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
    ("digits", "symbols.0.0.points", 80), ("digits", "symbols.0.0.points", 27), ("digits", "randomizer.k", 81),
    ("digits", "randomizer", {"name": "krr", "k": 12, "epsilon": 1.0}), ("digits", "symbols.0.0.of", ["first"] * 2),
    ("digits", "symbols.+", [{"of": ["first"], "rounding": "digits", "points": 81}], "randomizer.k", 24),
    ("digits", "symbols.0.+", {"of": ["first"], "rounding": "even", "points": 2}, "randomizer.k", 162),
    ("digits", "symbols.0.0.points", 1, "randomizer.k", 3), ("shares", "symbols.0.0.rounding", "digits"),
    ("vector 0", "values.0.length", 4), ("vector 0", "values.0.length", 0), ("vector 0", "values.0.length", 1.5),
    ("vector 0", "values.0.length", (1 << 16) + 1), ("vector 0", "values.0.lower", 0.0),
    ("vector 0", "values.+", {"name": "other", "length": 3}), ("vector 0", "values.0.categories", ["a", "b"]),
    ("vector 0", "symbols.+", [{"of": ["first"], "rounding": "even", "points": 3}]),
    ("vector 0", "randomizer.d", 2), ("vector 0", "randomizer.d", 0), ("vector 0", "randomizer.radius", 0.0),
    ("vector 0", "randomizer.axes", 4097), ("vector 0", "randomizer.axes", 0), ("vector 0", "randomizer.more", 1),
    ("vector 0", "randomizer.d", 1 << 16, "values.0.length", 1 << 16, "randomizer.axes", 256),
    ("vector 0", "randomizer.epsilon", 1e-300), ("vector 0", "randomizer", {"name": "krr", "k": 3, "epsilon": 1.0}),
    ("as it is", "values.0", {"name": "first", "length": 3}),
    ("joint", "question", "shares"), ("joint", "settings", {}), ("joint", "values", []), ("joint", "symbols", []),
    ("joint", "each", ...), ("joint", "each", 3), ("joint", "each", [3]), ("joint", "each", []),
    ("joint", "each.0.question", ...), ("joint", "each.0.more", 1), ("joint", "each.1.values.0.name", "way"),
    ("joint", "each.1", {"question": "vector", "values": [{"name": "minutes", "length": 3}]}),
    ("joint", "each.1.values.0.upper", 3.5), ("joint", "each.0.symbols", []),
    ("joint", "each.0.symbols.+", [{"of": ["way"], "rounding": "list", "points": 3}]),
    ("joint", "randomizer.parts.+", {"name": "krr", "k": 3, "epsilon": 1.0}), ("joint", "randomizer.epsilon", 1.8),
    ("joint", "randomizer.parts", []), ("joint", "randomizer.parts", 3), ("joint", "randomizer.parts", [3]),
    ("joint", "randomizer.parts", ...), ("joint", "randomizer.parts.0.k", 4),
    ("joint", "randomizer.parts.0.name", ...),
    ("joint", "randomizer.parts.0", {"name": "none", "k": 3}), ("joint", "randomizer.parts.0.epsilon", 0.0),
    ("joint", "randomizer.parts.0", {"name": "joint", "parts": []}), ("joint", "randomizer.parts.0.name", "gauss"),
    ("joint", "randomizer.parts.0", {"name": "closest_direction", "d": 3, "radius": 1.0, "epsilon": 1.0, "axes": 2}),
    ("joint", "randomizer", {"name": "krr", "k": 3, "epsilon": 1.0}), ("joint", "randomizer.categories", ["a", "b"]),
    ("shares", "randomizer", {"name": "joint", "parts": [{"name": "krr", "k": 3, "epsilon": 1.0}] * 2}),
    ("joint", "randomizer.parts", [{"name": "krr", "k": 3, "epsilon": 1.0}], "each.1", ..., "each.1", ...),
    ("joint", "randomizer.weights", [1, 1, 1]), ("joint", "randomizer.name", "one"),
    ("one", "question", "joint"), ("one", "question", "shares"),
    ("one", "randomizer.weights", ...),
    ("one", "randomizer.weights", [1, 1]), ("one", "randomizer.weights", [1, 1, 0]),
    ("one", "randomizer.weights", [1, 1, 1001]), ("one", "randomizer.weights", [1, 1, 1.5]),
    ("one", "randomizer.weights", [1, 1, "1"]),
    ("one", "randomizer.weights.+", 1),
    ("one", "randomizer.parts.0", {"name": "one", "parts": [], "weights": []}),
    ("one", "weights", [1, 1, 1]),
    ("shares", "question", "one"),
    ("combined", "question", "one"), ("combined", "question", "shares"), ("combined", "randomizer.k", 80),
    ("combined", "randomizer", {"name": "krr", "k": 81, "epsilon": 1.0}), ("combined", "randomizer.parts", []),
    ("combined", "each", []), ("combined", "each.2", ..., "each.1", ..., "randomizer.k", 3),
    ("combined", "each.0.symbols", [], "randomizer.k", 27), ("combined", "each.0.symbols.0", [], "randomizer.k", 27),
    ("combined", "each.0.values.0.categories", ["a"], "each.0.symbols.0.0.points", 1, "randomizer.k", 27),
    ("combined", "each.2.symbols.+", [{"of": ["age"], "rounding": "even", "points": 2}], "randomizer.k", 162),
    ("combined", "each.2.values.0.name", "way", "each.2.symbols.0.0.of", ["way"]), ("combined", "each.0.more", 1),
    ("combined", "each.2.symbols.0.0.of", ["way"]), ("combined", "each.0.symbols.0.0.of", ["age"]),
    ("combined", "each.2.symbols.0", [{"of": ["age"], "rounding": "digits", "points": 3}]),
    ("combined", "each.2.symbols.0", [{"of": ["age"], "rounding": "even", "points": 1 << 24}], "randomizer.k", 81),
    ("combined", "each.1", {"question": "vector", "values": [{"name": "minutes", "length": 3}]}, "randomizer.k", 9),
]  # fmt: skip
UNANSWERED: list[tuple[str, Any]] = [
    ("grid", 3.5), ("grid", "1"), ("grid", True), ("grid", None), ("grid", []), ("grid", [1, 2]), ("grid", [[1]]),
    ("grid", {}), ("grid", {"second": 1}), ("grid", {"first": 1, "second": 1}), ("covariance 0", 1),
    ("covariance 0", [1]), ("covariance 0", [1, 0.5, 0.5]), ("covariance 0", {"first": 1}),
    ("covariance 0", [1, "0.5"]),
    ("shares", "d"), ("shares", 3), ("shares", 1.5), ("shares", None), ("shares", True), ("nonresponse 0", "nothing"),
    ("nonresponse 0", -1), ("tables 0", ["a", "M"]), ("tables 0", ["a", "M", "rich"]), ("digits", 3.5),
    ("vector 0", 1.0), ("vector 0", [1.0]), ("vector 0", [1, 2]), ("vector 0", [1, 2, 3, 4]),
    ("vector 0", [1, 2, "3"]),
    ("vector 0", [1, 2, True]), ("vector 0", [1, 2, None]), ("vector 0", {"first": 1}), ("vector 0", "123"),
    ("vector 0", [[1, 2, 3], [1, 2, 3]]), ("vector 0", {"first": {"0": 1, "1": 2, "2": 3, "length": 3}}),
    ("joint", ["a", 0.5, 1]), ("joint", ["a", 0.5, 1, 0.5, 1]), ("joint", {"way": "a"}), ("joint", ["a", 0.5, 1, 7]),
    ("joint", ["d", 0.5, 1, 0.5]), ("joint", "a"), ("joint", None), ("one", ["a", 0.5, 1]), ("one", {"way": "a"}),
    ("one", ["d", 0.5, 1, 0.5]), ("combined", ["a", 0.5, 1]), ("combined", ["d", 0.5, 1, 40]), ("combined", 3),
    ("combined", ["a", 0.5, 1, 101]), ("combined", {"way": "a", "first": 0.5, "second": 1}),
]  # fmt: skip


def unanswered(name: str, given: Any) -> list[Any]:
    """What is given, which the reference refuses."""
    try:
        _table(name).check(given)
    except DataError:
        return [name, given]
    raise AssertionError(f"{name} takes {given}")
