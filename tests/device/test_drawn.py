"""One report about one of several questions: their laws mixed, drawn without a look at what a person holds."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits, SimulatedBits
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.account.questions import OneQuestion
from dovetail.collect.analyzer.tallies import DREW, decode_all, tally_all, tally_of_question
from dovetail.collect.campaign.terms import forms_of
from dovetail.core.entropy import simulation
from dovetail.job.messages import CHOSEN, draw_questions
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.joint import Drawn
from dovetail_protocol.mechanism import Mechanism, mechanism

FIRST, SECOND = mechanism("krr", k=3, epsilon=1.0), mechanism("krr", k=2, epsilon=0.5)
EITHER = Drawn((FIRST, SECOND), (3, 1))
LAPLACE = mechanism("laplace", lower=0.0, upper=60.0, epsilon=1.0, grid=2.0)
OTHERS = [
    Drawn((FIRST, LAPLACE), (1, 1)),
    Drawn((mechanism("unary", k=9, epsilon=1.0), mechanism("local_hashing", k=9, epsilon=2.0), LAPLACE), (1, 5, 2)),
    Drawn((mechanism("hadamard", k=300, epsilon=1.0), mechanism("krr", k=300, epsilon=1.0)), (1, 1000)),
]
DRAWS = 20_000


def mixed_law(value: Sequence[int]) -> np.ndarray:
    """Of (question, answer): 0 to 2 of the first question, 3 and 4 of the second."""
    kinds: list[Any] = list(forms_of(EITHER))
    rows = [kind.channel().matrix()[one] for kind, one in zip(kinds, value, strict=True)]
    return np.concatenate([0.75 * rows[0], 0.25 * rows[1]])


def counted(value: Sequence[int], words: Words) -> np.ndarray:
    reports = [EITHER.randomize(value, words) for _ in range(DRAWS)]
    return np.bincount([3 * place + own for place, own in reports], minlength=5)


class Eager(Words):
    """What would draw the second question too often: every eighth time whatever chance says."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def bits(self, count: int) -> int:
        return 3 if count == 2 and not self.words.bits(3) else self.words.bits(count)


@pytest.mark.parametrize("value", [(0, 0), (2, 1)])
def test_a_report_has_the_mixture_of_the_laws_of_the_questions(value: tuple[int, int]) -> None:
    words = SimulatedBits(rng_of(f"drawn {value}"))
    expect_law(counted(value, words), mixed_law(value))
    expect_broken(counted(value, Eager(words)), mixed_law(value))


def test_every_pair_of_persons_is_told_apart_by_the_largest_epsilon_at_most() -> None:
    """By enumeration of all answers and reports: reached by two who differ in the question that has it."""
    laws = np.array([mixed_law(value) for value in product(range(3), range(2))])
    worst = float(np.log(laws[:, None] / laws[None]).max())
    rounding = 1e-14  # of the doubles of a product and a logarithm
    assert EITHER.epsilon == 1.0 and 0.9999 < worst <= EITHER.epsilon + rounding
    assert OneQuestion(forms_of(EITHER), (0.75, 0.25)).epsilon == EITHER.epsilon


@pytest.mark.parametrize("value", list(product(range(3), range(2))))
@pytest.mark.parametrize(("drawn", "place"), [(0, 0), (1, 0), (2, 0), (3, 1)])
def test_the_question_is_drawn_by_the_first_bits_whatever_a_person_holds(
    value: tuple[int, int], drawn: int, place: int
) -> None:
    words = ChosenBits([drawn, 0])
    found, own = EITHER.randomize(value, words)
    assert found == place and own == EITHER.parts[place].randomize(value[place], ChosenBits([0])) and not words.left


def test_a_device_draws_as_often_as_a_run_does() -> None:
    """Both draw below the sum of the weights, and take the same question of the same number."""
    assert [EITHER.randomize((0, 0), ChosenBits([at, 0]))[0] for at in range(4)] == [0, 0, 0, 1]
    drawn = np.bincount(draw_questions(DRAWS, EITHER.weights, simulation(1)), minlength=2)
    expect_law(drawn, np.array([0.75, 0.25]))
    assert EITHER.expected(1000) == (750, 250) and EITHER.expected(1) == (1, 1)


@pytest.mark.parametrize("either", [EITHER, *OTHERS], ids=lambda one: "+".join(part.name for part in one.parts))
def test_reports_have_one_length_and_are_read_one_by_one_as_all_at_once(either: Drawn) -> None:
    words = SimulatedBits(rng_of("drawn lengths"))
    held = [tuple(1 for _ in either.parts), tuple(0 for _ in either.parts)] * 50
    encoded = [either.encode(either.randomize(one, words)) for one in held]
    assert {len(one) for one in encoded} == {either.report_bytes}
    assert either.report_bytes == 1 + max(part.report_bytes for part in either.parts)
    table = np.frombuffer(b"".join(encoded), dtype=np.uint8).reshape(len(held), -1)
    reports, valid = decode_all(either, table)
    assert valid.all() and len(reports) == len(held)
    for row, one in zip(reports, encoded, strict=True):
        place, own = either.decode(one)
        assert either.encode((place, own)) == one and row[CHOSEN] == place
        assert np.array_equal(np.ravel(row[str(place)]), np.ravel(_read(either.parts[place], own)))
        answers = [either.own(one, at) for at in range(len(either.parts))]
        assert [bool(each) for each in answers] == [at == place for at in range(len(either.parts))]
        assert answers[place] == either.parts[place].encode(own) and not either.own(b"", place)


def _read(part: Mechanism, report: Any) -> Any:
    """A report in the form that the analyst's randomizer has."""
    data = np.frombuffer(part.encode(report), dtype=np.uint8)[None]
    return decode_all(part, data)[0][0]


def test_counts_say_how_many_drew_each_question_and_nothing_of_one_that_nobody_drew() -> None:
    words = SimulatedBits(rng_of("drawn tally"))
    encoded = [EITHER.encode((0, FIRST.randomize(1, words))) for _ in range(7)]
    forms: Any = forms_of(EITHER)
    table = np.frombuffer(b"".join(encoded), dtype=np.uint8).reshape(7, -1)
    found = tally_all(forms, decode_all(EITHER, table)[0], group="east")
    assert found.n == 7 and (DREW, 7) in found.counts and all(count > 0 for _, count in found.counts)
    first, second = (tally_of_question(found, place, drawn=True) for place in (0, 1))
    assert (first.group, first.n, sum(count for _, count in first.counts)) == ("east", 7, 7)
    assert (second.n, second.counts) == (0, ())


@pytest.mark.parametrize("wrong", [b"", b"\x00", b"\x00\x03", b"\x01\x02", b"\x02\x00", b"\xff\x00", b"\x00\x00\x00"])
def test_what_no_device_sends_is_refused(wrong: bytes) -> None:
    with pytest.raises(DataError):
        EITHER.decode(wrong)
    if len(wrong) == EITHER.report_bytes:
        good = EITHER.encode((1, 1))
        reports, valid = decode_all(EITHER, np.frombuffer(good + wrong + good, dtype=np.uint8).reshape(3, -1))
        assert valid.tolist() == [True, False, True]
        assert reports["1"].tolist() == [1, 1] and reports[CHOSEN].tolist() == [1, 1]


@pytest.mark.parametrize("either", OTHERS[:2], ids=lambda one: "+".join(part.name for part in one.parts))
def test_what_stands_behind_a_shorter_answer_is_zero(either: Drawn) -> None:
    """Else a device could send whom it likes to be more than an answer."""
    words = SimulatedBits(rng_of("drawn padding"))
    place = min(range(len(either.parts)), key=lambda at: either.parts[at].report_bytes)
    part = either.parts[place]
    whole = bytearray(either.encode((place, part.randomize(1, words))))
    assert 1 + part.report_bytes < len(whole)
    whole[-1] = 1
    with pytest.raises(DataError, match="zeros"):
        either.decode(bytes(whole))
    assert not decode_all(either, np.frombuffer(bytes(whole), dtype=np.uint8)[None])[1].any()


@pytest.mark.parametrize("value", [None, 1, (1,), (1, 1, 1), "ab", (3, 0), (0, 2), {0: 1}])
def test_a_person_who_leaves_out_an_answer_sends_none_and_no_word_is_used(value: Any) -> None:
    with pytest.raises(DataError):
        EITHER.randomize(value, ChosenBits([]))


@pytest.mark.parametrize("report", [None, 1, (1,), (0, 0, 0), (2, 0), (0, 3), (True, 2)])
def test_only_a_question_and_a_report_to_it_is_encoded(report: Any) -> None:
    with pytest.raises(DataError):
        EITHER.encode(report)


@pytest.mark.parametrize(
    ("parts", "weights", "told"),
    [
        ((FIRST,), (1,), "parts"),
        ((FIRST,) * 17, (1,) * 17, "parts"),
        ((FIRST, EITHER), (1, 1), "parts"),
        ((FIRST, SECOND), (), "weights"),
        ((FIRST, SECOND), (1,), "weights"),
        ((FIRST, SECOND), (0, 1), "weights"),
        ((FIRST, SECOND), (1, 1001), "weights"),
        ((FIRST, SECOND), (1, 1.5), "weights"),
    ],
)
def test_only_symbols_and_numbers_are_drawn_from_with_a_weight_each(parts: Any, weights: Any, told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        Drawn(parts, weights)
