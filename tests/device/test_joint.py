"""One report about several questions: the product of their laws, one length, and nothing that no device sends."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits, SimulatedBits
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.account.questions import JointReport
from dovetail.collect.analyzer.tallies import decode_all
from dovetail.randomize.sampling.open_reports import from_device
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import WORD, Words
from dovetail_protocol.joint import Joint
from dovetail_protocol.mechanism import Mechanism, mechanism

FIRST, SECOND = mechanism("krr", k=3, epsilon=1.0), mechanism("krr", k=2, epsilon=0.5)
BOTH = Joint((FIRST, SECOND))
LAPLACE = mechanism("laplace", lower=0.0, upper=60.0, epsilon=1.0, grid=2.0)
OTHERS = [
    Joint((FIRST, LAPLACE)),
    Joint((mechanism("unary", k=9, epsilon=1.0), mechanism("local_hashing", k=9, epsilon=2.0), LAPLACE)),
    Joint((mechanism("hadamard", k=300, epsilon=1.0), mechanism("krr", k=300, epsilon=1.0))),
]
DRAWS = 20_000


def product_law(value: Sequence[int]) -> np.ndarray:
    kinds: list[Any] = [from_device(part) for part in BOTH.parts]
    first, second = (kind.channel().matrix()[one] for kind, one in zip(kinds, value, strict=True))
    return np.asarray(np.outer(first, second).ravel())


def counted(value: Sequence[int], words: Words) -> np.ndarray:
    reports = [BOTH.randomize(value, words) for _ in range(DRAWS)]
    return np.bincount([2 * first + second for first, second in reports], minlength=6)


class OneWordForAll(Words):
    """What would join the coins of two questions: every word is given twice."""

    def __init__(self, words: Words) -> None:
        self.words, self.kept = words, list[int]()

    def bits(self, count: int) -> int:
        if not self.kept:
            self.kept = [self.words.bits(count)] * 2
        return self.kept.pop()


@pytest.mark.parametrize("value", [(0, 0), (2, 1)])
def test_the_answers_of_a_person_have_the_product_of_their_laws(value: tuple[int, int]) -> None:
    words = SimulatedBits(rng_of(f"joint {value}"))
    expect_law(counted(value, words), product_law(value))
    expect_broken(counted(value, OneWordForAll(words)), product_law(value))


def test_every_pair_of_answers_is_told_apart_by_the_sum_of_the_epsilons_at_most() -> None:
    """By enumeration of all answers and reports, and reached by two that differ in both."""
    laws = np.array([product_law(value) for value in product(range(3), range(2))])
    worst = float(np.log(laws[:, None] / laws[None]).max())
    rounding = 1e-14  # of the doubles of six products and a logarithm
    assert BOTH.epsilon == 1.5 and 1.4999 < worst <= BOTH.epsilon + rounding
    assert JointReport(tuple(map(from_device, BOTH.parts))).epsilon == BOTH.epsilon


def test_epsilons_add_as_people_write_them() -> None:
    tenths = Joint((mechanism("krr", k=2, epsilon=0.1), mechanism("krr", k=2, epsilon=0.2)))
    assert tenths.epsilon == 0.3


def test_every_question_has_words_of_its_own_in_the_order_of_the_questions() -> None:
    words = ChosenBits([0, WORD - 1])
    assert BOTH.randomize((1, 1), words) == (1, SECOND.randomize(1, ChosenBits([WORD - 1]))) and not words.left


@pytest.mark.parametrize("joint", [BOTH, *OTHERS], ids=lambda joint: "+".join(part.name for part in joint.parts))
def test_reports_have_one_length_and_are_read_one_by_one_as_all_at_once(joint: Joint) -> None:
    words = SimulatedBits(rng_of("joint lengths"))
    held = [tuple(1 for _ in joint.parts), tuple(0 for _ in joint.parts)] * 50
    encoded = [joint.encode(joint.randomize(one, words)) for one in held]
    assert {len(one) for one in encoded} == {joint.report_bytes} == {sum(part.report_bytes for part in joint.parts)}
    table = np.frombuffer(b"".join(encoded), dtype=np.uint8).reshape(len(held), -1)
    reports, valid = decode_all(joint, table)
    assert valid.all() and len(reports) == len(held)
    for row, one in zip(reports, encoded, strict=True):
        again = joint.decode(one)
        assert joint.encode(again) == one
        for place, part in enumerate(joint.parts):
            assert np.array_equal(np.ravel(row[str(place)]), np.ravel(_read(part, again[place])))


def _read(part: Mechanism, report: Any) -> Any:
    """A report in the form that the analyst's randomizer has."""
    data = np.frombuffer(part.encode(report), dtype=np.uint8)[None]
    return decode_all(part, data)[0][0]


@pytest.mark.parametrize("wrong", [b"", b"\x00", b"\x03\x00", b"\x00\x02", b"\xff\xff", b"\x00\x00\x00"])
def test_what_no_device_sends_is_refused_whole_whichever_part_is_wrong(wrong: bytes) -> None:
    with pytest.raises(DataError):
        BOTH.decode(wrong)
    if len(wrong) == BOTH.report_bytes:
        good = BOTH.encode((2, 1))
        reports, valid = decode_all(BOTH, np.frombuffer(good + wrong + good, dtype=np.uint8).reshape(3, -1))
        assert valid.tolist() == [True, False, True]
        assert reports["0"].tolist() == [2, 2] and reports["1"].tolist() == [1, 1]


@pytest.mark.parametrize("value", [None, 1, (1,), (1, 1, 1), "ab", (3, 0), (0, 2), {0: 1}])
def test_a_person_who_leaves_out_an_answer_sends_none_and_no_word_is_used(value: Any) -> None:
    with pytest.raises(DataError):
        BOTH.randomize(value, ChosenBits([]))


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (FIRST,),
        (FIRST,) * 17,
        (FIRST, BOTH),
        (FIRST, mechanism("closest_direction", d=4, radius=1.0, epsilon=4.0, axes=9)),
    ],
)
def test_only_symbols_and_numbers_stand_together(parts: tuple[Mechanism, ...]) -> None:
    with pytest.raises(ParameterError, match="parts"):
        Joint(parts)
