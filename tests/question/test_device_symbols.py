"""Devices make the same symbols of the same values as the analyst's question does."""

from typing import Any

import numpy as np
import pytest
from tests.statistics import rng_of

from dovetail.collect.campaign.terms import asked_of
from dovetail.core.entropy import Entropy, simulation
from dovetail.core.question import QUESTIONS, Question
from dovetail.question.distribution import Distribution
from dovetail.question.nonresponse import Nonresponse
from dovetail.question.number import Number
from dovetail.question.shares import Shares
from dovetail.question.vector import Vector
from dovetail.randomize.sampling.open_reports import OpenNumbers
from dovetail_protocol.asked import Asked, read_asked
from dovetail_protocol.errors import ConfigError, DataError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.toml_section import Section


class OwnWords(Words):
    """The words that a question draws, one after the other."""

    def __init__(self, rng: Entropy) -> None:
        self.rng = rng

    def bits(self, count: int) -> int:
        assert count == 64
        return int(self.rng.words(1)[0])


UNEVEN = Distribution(0.0, 100.0, ends=(0.0, 10.0, 11.0, 100.0))
SYMBOLS: list[Question] = [
    UNEVEN,
    Shares(("a", "b", "c")),
    Number(-1.0, 3.0),
    Distribution(0.1, 7.7, bins=60, levels=3),
    *(one for kind in QUESTIONS if "examples" in vars(kind) and not kind.of_arrays for one in kind.examples()),
]
EVERY = [Vector(3, 1.0), *SYMBOLS]


def people(asked: Asked, n: int) -> list[list[Any]]:
    """Values of people, both ends of every range among them."""
    rng = rng_of(f"{asked.question} {n}")
    columns = []
    for one in asked.values:
        if one.categories:
            columns.append(rng.below(len(one.categories), n).tolist())
        else:
            drawn = one.lower + (one.upper - one.lower) * (rng.words(n - 2) >> np.uint64(11)) * 2.0**-53
            columns.append([one.lower, one.upper, *drawn.tolist()])
            columns[-1][5::9] = [None] * len(columns[-1][5::9]) if one.missing else columns[-1][5::9]
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("question", SYMBOLS, ids=repr)
def test_a_device_makes_the_symbols_of_the_question_from_the_same_random_words(question: Question) -> None:
    asked = asked_of(question, private="first", settings={}, k=7 if question.needs == "mean" else None)
    if question.needs == "frequency":
        assert asked.size == question.domain["k"] and len(asked.symbols) == question.symbols
    for place, held in enumerate(people(asked, 100)):
        found = asked.answers(asked.check(held), OwnWords(simulation(place)))
        values = np.array([held]) if len(held) > 1 else np.array([np.nan if one is None else one for one in held])
        if question.needs == "mean":
            wanted = OpenNumbers(-1.0, 3.0, 7).randomize(values, simulation(place))
        else:
            wanted = question.answer(values, simulation(place))
        assert found == np.ravel(wanted).tolist()


@pytest.mark.parametrize("question", EVERY, ids=repr)
def test_what_is_asked_reads_back_as_it_was_stated(question: Question) -> None:
    asked = asked_of(question, private="first", settings={"points": 3}, k=None)
    assert read_asked(Section("asks", asked.stated())) == asked
    assert read_asked(Section("asks", {})) is None


def test_a_question_that_no_device_can_answer_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shares, "unsent", "a test forbids it")
    with pytest.raises(ConfigError, match="shares of answers is in no campaign: a test forbids it"):
        asked_of(Shares(("a", "b")), private="first", settings={}, k=2)


def test_an_array_is_given_by_itself_by_name_or_among_the_values_of_a_person() -> None:
    asked, held = asked_of(Vector(2, 1.0), private="profile", settings={}, k=None), (0.5, -3.0)
    for given in ([0.5, -3], (0.5, -3.0), np.array(held), [[0.5, -3.0]], [np.array(held)], {"profile": [0.5, -3.0]}):
        assert asked.check(given) == (held,) and asked.answers(asked.check(given), OwnWords(simulation(1))) == [held]
    for bad in ([0.5], [0.5, -3.0, 1.0], [[0.5, -3.0], 1.0], 0.5, "0.5", [0.5, float("nan")], [0.5, None], []):
        with pytest.raises(DataError, match=r"^`profile` must be 2 finite numbers\.$"):
            asked.check(bad)
    alone = asked_of(Vector(1, 1.0), private="profile", settings={}, k=None)
    assert alone.check([0.5]) == alone.check([[0.5]]) == alone.check({"profile": [0.5]}) == ((0.5,),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"values": [{"name": "a", "length": 2}, {"name": "b", "length": 2}]}, "stands alone"),
        ({"values": [{"name": "a", "length": 2}, {"name": "b", "lower": 0.0, "upper": 1.0}]}, "stands alone"),
        ({"symbols": [[{"of": ["a"], "rounding": "even", "points": 3}]]}, "stands alone"),
        ({"values": [{"name": "a", "length": 0}]}, "`asks.values.length` must be"),
        ({"values": [{"name": "a", "length": 65_537}]}, "`asks.values.length` must be"),
        ({"values": [{"name": "a", "length": 2, "lower": 0.0}]}, "lower"),
        ({"values": [{"name": "a", "length": 2, "categories": ["x"]}]}, "length"),
    ],
    ids=str,
)
def test_an_array_stands_alone_and_without_symbols(change: dict[str, Any], message: str) -> None:
    stated = asked_of(Vector(2, 1.0), private="a", settings={}, k=None).stated()
    with pytest.raises(ConfigError, match=message):
        read_asked(Section("asks", stated | change))


def test_values_are_checked_by_name_and_never_repeated() -> None:
    asked = asked_of(next(iter(EVERY[-1:])), private="first", settings={}, k=None)
    good = {"first": "a", "sex": "F", "income": "low"}
    assert asked.check(good) == asked.check(["a", "F", "low"]) == (0, 0, 0)
    for bad in ({**good, "sex": "secret"}, {"first": "a"}, ["a"], "a", ["a", "F", 17], {**good, "more": 1}):
        with pytest.raises(DataError) as refused:
            asked.check(bad)
        assert "secret" not in str(refused.value) and "17" not in str(refused.value)


def test_no_answer_is_a_symbol_of_its_own_where_a_person_may_leave_the_number_out() -> None:
    asked = asked_of(Nonresponse(0.0, 10.0, points=3), private="first", settings={}, k=None)
    for none in (None, "no answer", {"first": None}):
        assert asked.answers(asked.check(none), OwnWords(simulation(1))) == [3]
    with pytest.raises(DataError, match=r"\[0.0, 10.0\], or 'no answer'"):
        asked.check("nothing")
    stated = asked.stated()
    stated["values"][0].pop("missing")
    with pytest.raises(ConfigError, match="does not go with rounding 'gaps'"):
        read_asked(Section("asks", stated))
    stated = asked.stated()
    stated["symbols"][0][0]["rounding"] = "even"
    with pytest.raises(ConfigError, match="does not go with rounding 'even'"):
        read_asked(Section("asks", stated))


def test_a_number_at_an_end_lies_in_the_bin_above_and_the_last_one_in_the_last_bin() -> None:
    asked = asked_of(UNEVEN, private="first", settings={}, k=None)
    for held, place in ((0.0, 0), (9.99, 0), (10.0, 1), (10.5, 1), (11.0, 2), (100.0, 2)):
        assert asked.answers(asked.check(held), OwnWords(simulation(1))) == [place]


@pytest.mark.parametrize(
    "change",
    [
        {"ends": [0.0, 11.0, 10.0, 100.0]},
        {"ends": [0.0, 10.0, 10.0, 100.0]},
        {"ends": [0.0, 10.0, 11.0, 99.0]},
        {"ends": [1.0, 10.0, 11.0, 100.0]},
        {"ends": [0.0, 10.0, 100.0]},
        {"ends": [0.0, 10.0, float("nan"), 100.0]},
        {"ends": [0.0, "10", 11.0, 100.0]},
        {"ends": 3.0},
        {"ends": []},
        {"points": 4},
        {"bins": 3},
        {"rounding": "even"},
    ],
    ids=str,
)
def test_ends_of_bins_are_those_of_the_whole_range_or_refused_in_one_line(change: dict[str, Any]) -> None:
    stated = asked_of(UNEVEN, private="first", settings={}, k=None).stated()
    stated["symbols"][0][0] |= change
    with pytest.raises(ConfigError) as refused:
        read_asked(Section("asks", stated))
    assert "\n" not in str(refused.value)
