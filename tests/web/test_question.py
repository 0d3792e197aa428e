"""What is written in a field is read as people mean it, or refused in a line; a link holds the whole question."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.core.errors import ParameterError
from dovetail.web.questions import FIELDS, SLIDERS, START, Question, neighbours, number_of, whole_of


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "10000", 10_000.0),
        ("n", "10,000", 10_000.0),
        ("n", "1 000 000", 1e6),
        ("n", "1e6", 1e6),
        ("error", "3%", 0.03),
        ("error", ".03", 0.03),
        ("error", "0,03", 0.03),
        ("error", ",5", 0.5),
        ("upper", "1,25", 1.25),
        ("upper", "1,250", 1250.0),
        ("honest", "90 %", 0.9),
        ("lower", "-2.5", -2.5),
    ],
)
def test_numbers_are_read_as_people_write_them(name: str, text: str, value: float) -> None:
    assert number_of(name, text) == value


@pytest.mark.parametrize("text", ["1,00,0", "abc", "nan", "inf", "1e9999", "--1", "1/3", "0x10", "1" * 41, "²"])
def test_what_is_no_number_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ParameterError, match="`error` must be a number such as") as refused:
        number_of("error", text)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 120


def test_a_percentage_of_people_is_refused() -> None:
    with pytest.raises(ParameterError, match="not a percentage"):
        number_of("n", "5%")
    with pytest.raises(ParameterError, match="not a percentage"):
        Question.of({"question": "mean", "lower": "0", "upper": "100", "n": "100", "error": "5%"}).arguments()


def test_a_point_that_may_stand_for_thousands_is_no_decimal_point_of_a_count() -> None:
    for text in ("10.000", "1.500"):
        with pytest.raises(ParameterError, match="`n` must be a whole number without points"):
            whole_of("n", text)
    assert whole_of("n", "1.5e3") == 1500 and whole_of("n", "2.0") == 2 and number_of("error", "1.500") == 1.5


def test_a_huge_count_is_not_spelled_out_in_hundreds_of_digits() -> None:
    assert len(repr(whole_of("n", "1e308"))) < 10


def test_a_percentage_of_honest_people_is_a_share_and_never_a_number_of_them() -> None:
    asked = {"question": "frequency", "k": "4", "n": "10000", "error": "0.03"}
    assert Question({**asked, "honest": "90 %"}).arguments()["honest"] == 0.9
    assert "honest" not in Question({**asked, "honest": "100%"}).arguments()
    assert Question({**asked, "honest": "1"}).arguments()["honest"] == 1
    for text in ("0%", "101%", "200 %"):
        with pytest.raises(ParameterError, match="`honest` must be above 0 % and at most 100 %"):
            Question({**asked, "honest": text}).arguments()


def test_names_of_a_configuration_ask_the_same_as_in_the_command_line() -> None:
    for name, same in {"shares": "frequency", "number": "mean"}.items():
        asked = {"k": "4", "lower": "0", "upper": "9", "n": "10000", "error": "0.03"}
        assert Question.of({**asked, "question": name}) == Question.of({**asked, "question": same})
        Question.of({**asked, "question": name}).arguments()


def test_an_address_without_a_question_asks_the_first() -> None:
    assert Question.of({}).texts == START == Question.of({"full": "1"}).texts


def test_fields_of_the_other_kind_of_question_are_left_out() -> None:
    asked = {"question": "mean", "k": "4", "lower": "0", "upper": "9", "shares": "any", "n": "100", "error": "1"}
    assert set(Question.of(asked).arguments()) == {"question", "lower", "upper", "n", "error"}


def test_dummies_and_rounds_are_asked_of_the_shuffler_alone() -> None:
    for mine in ({"question": "frequency", "k": "4"}, {"question": "distribution", "lower": "0", "upper": "9"}):
        asked = {**mine, "n": "900", "epsilon": "1", "dummies": "gaussian", "rounds": "12"}
        told = Question.of({**asked, "trust": "shuffler"}).arguments()
        assert (told["dummies"], told["rounds"]) == ("gaussian", 12)
        for trust in ("users", "local"):
            assert not {"dummies", "rounds"} & set(Question.of({**asked, "trust": trust}).arguments())


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(FIELDS), st.text(alphabet="019.e%,-& é<", max_size=6), min_size=1))
def test_a_link_holds_the_question(texts: dict[str, str]) -> None:
    question = Question.of(texts)
    assert Question.of(dict(parse_qsl(question.query))) == question


def test_sliders_stop_at_round_numbers_and_know_their_neighbours() -> None:
    assert SLIDERS["n"][0] == "100" and SLIDERS["n"][-1] == "1000000000"
    for name, stops in SLIDERS.items():
        values = [float(stop) for stop in stops]
        assert values == sorted(set(values)), name
        assert all(number_of(name, stop) == value for stop, value in zip(stops, values, strict=True))
    assert neighbours("error", "0.03") == ("0.04", "0.025", "0.05", "0.02")
    assert neighbours("error", "0.03", after="0.04") == ("0.025", "0.02", "0.04", "0.05")
    assert neighbours("error", "0.031", after="0.02") == ("0.04", "0.05", "0.03", "0.025")
    assert neighbours("n", "100") == ("125", "160") and neighbours("delta", "0.1") == () == neighbours("n", "x")
