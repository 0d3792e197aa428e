"""A mechanism as a black box: faults raise an alarm, correct mechanisms do not.

Coins and mechanisms have seeds. Each audit has the false-alarm rate 1e-9; the faults are large enough to be caught
with a probability above 0.9 at these numbers of calls.
"""

import math
import random
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom, multinomial

import dovetail as dt
from dovetail.audit.box import Program
from dovetail.audit.game import audit_mechanism, largest_odds, largest_refuted
from dovetail.core.entropy import simulation

Box = Callable[[Any], Any]


def response(k: int, epsilon: float) -> Box:
    """Randomized response among k values."""
    draw, keep = random.Random(k), math.exp(epsilon) / (math.exp(epsilon) + k - 1)

    def box(value: int) -> int:
        if draw.random() < keep:
            return value
        other = draw.randrange(k - 1)
        return other + (other >= value)

    return box


def laplace(scale: float, *, grid: float | None) -> Box:
    draw = random.Random(11)

    def box(value: float) -> float:
        noisy = value + draw.expovariate(1.0 / scale) - draw.expovariate(1.0 / scale)
        return noisy if grid is None else round(noisy / grid) * grid

    return box


def unary(value: int) -> list[int]:
    draw = COINS.random
    return [int(draw() < (0.5 if place == value else 1.0 / (1.0 + math.e))) for place in range(4)]


def last_in_clear(value: int) -> list[int]:
    return [COINS.randrange(2), COINS.randrange(2), value]


COINS = random.Random(5)
CORRECT: dict[str, tuple[Box, list[Any], int, float]] = {  # with the least share of the claim that shows
    "two values": (response(2, 1.0), [0, 1], 40_000, 0.8),
    "ten values": (response(10, 1.0), list(range(10)), 40_000, 0.8),
    "one bit for each value": (unary, [0, 1, 2, 3], 20_000, 0.6),
    "Laplace on a grid": (laplace(1.0, grid=2.0**-6), [0.0, 1.0], 20_000, 0.5),
    "a constant": (lambda _: "always", [0, 1], 1_000, 0.0),
}
FAULTY: dict[str, tuple[Box, list[Any], int]] = {
    "two values, too sharp": (response(2, 1.3), [0, 1], 40_000),
    "ten values, too sharp": (response(10, 1.3), list(range(10)), 40_000),
    "the last bit in clear": (last_in_clear, [0, 1], 1_000),
    "Laplace noise in doubles": (laplace(1.0, grid=None), [0.0, 1.0], 20_000),
    "sensitivity of another input": (laplace(1.0, grid=1.0), [0.0, 5.0], 20_000),
    "no noise at all": (lambda text: text, ["yes", "no", "perhaps"], 1_000),
}


@pytest.mark.exhaust
@pytest.mark.parametrize(("box", "inputs", "calls", "least"), CORRECT.values(), ids=list(CORRECT))
def test_what_keeps_its_claim_is_silent_and_most_of_it_shows(
    box: Box, inputs: list[Any], calls: int, least: float
) -> None:
    found = audit_mechanism(box, inputs, epsilon=1.0, calls=calls, rng=simulation(1))
    assert not found.alarm and least <= found.lower <= 1.0
    assert ("blind" in found.sentence) == (found.lower < 0.5) and "no proof" in found.sentence


@pytest.mark.parametrize(("box", "inputs", "calls"), FAULTY.values(), ids=list(FAULTY))
def test_faults_raise_an_alarm(box: Box, inputs: list[Any], calls: int) -> None:
    found = audit_mechanism(box, inputs, epsilon=1.0, calls=calls, rng=simulation(2))
    assert found.alarm and found.lower > 1.0 and found.sentence.startswith("alarm: at least ")
    assert found.event in found.sentence


@pytest.mark.parametrize("expected", [0.75, 0.8, 0.95])
@pytest.mark.parametrize("guesses", [1, 30, 400])
def test_a_mechanism_at_its_claim_is_accused_as_seldom_as_it_says(guesses: int, expected: float) -> None:
    claim = math.e / (1.0 + math.e)
    for alpha in (0.5, 0.05, 1e-3):
        accused = [
            right
            for right in range(guesses + 1)
            if largest_refuted(right, guesses - right, expected=expected, least=0.5, wanted=-math.log(alpha)) > claim
        ]
        assert binom.pmf(accused, guesses, claim).sum() <= alpha


@pytest.mark.parametrize("delta", [1e-3, 0.1])
@pytest.mark.parametrize("stake", [0.05, 0.2, 0.34])
def test_with_delta_a_mechanism_at_its_claim_is_accused_as_seldom_as_it_says(stake: float, delta: float) -> None:
    guesses, x = 40, math.e  # of two inputs
    for wrong_share in (0.0, 0.05, 0.2):  # a law exactly at the claim
        shares = [delta + x * wrong_share, wrong_share, 1.0 - delta - (1.0 + x) * wrong_share]
        for alpha in (0.5, 0.05, 1e-3):
            accused = [
                (right, wrong, guesses - right - wrong)
                for right in range(guesses + 1)
                for wrong in range(guesses + 1 - right)
                if largest_odds(
                    right, wrong, guesses - right - wrong, stake=stake, delta=delta, wanted=-math.log(alpha)
                )
                > x
            ]
            assert not accused or multinomial.pmf(accused, guesses, shares).sum() <= alpha


def gaussian(deviation: float) -> Box:
    draw = random.Random(12)
    return lambda value: round(64 * draw.gauss(value, deviation)) / 64


def sometimes(chance: float) -> Box:
    draw = random.Random(13)
    return lambda value: value if draw.random() < chance else "nothing"


WITH_DELTA: dict[str, tuple[Box, float, bool]] = {
    "Gaussian at its claim": (gaussian(1.0), 0.127, False),
    "Gaussian with a fourth of the deviation": (gaussian(0.93), 1e-5, True),
    "in clear as often as delta": (sometimes(0.1), 0.1, False),
    "in clear twice as often": (sometimes(0.1), 0.05, True),
}


@pytest.mark.exhaust
@pytest.mark.parametrize(("box", "delta", "alarm"), WITH_DELTA.values(), ids=list(WITH_DELTA))
def test_delta_is_granted_and_no_more(box: Box, delta: float, alarm: bool) -> None:
    found = audit_mechanism(box, [0.0, 1.0], epsilon=1.0, delta=delta, calls=40_000, rng=simulation(6))
    assert found.alarm == alarm


def test_what_shows_in_the_half_that_chooses_is_no_evidence() -> None:
    called = 0

    def turns_honest(value: int) -> int:
        nonlocal called
        called += 1
        return value if called <= 1_000 else COINS.randrange(2)

    found = audit_mechanism(turns_honest, [0, 1], epsilon=1.0, calls=2_000, rng=simulation(3))
    assert found.lower == 0.0 and called == 2_000


def test_an_audit_is_repeated_by_its_coins() -> None:
    first, again = (
        audit_mechanism(response(3, 1.0), [0, 1, 2], epsilon=1.0, calls=2_000, rng=simulation(4)) for _ in range(2)
    )
    assert first == again


def test_what_a_mechanism_prints_or_changes_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    def noisy(values: list[int]) -> int:
        print("hello")
        return values.pop()

    assert audit_mechanism(noisy, [[0], [1]], epsilon=1.0, calls=1_000, rng=simulation(5)).alarm
    assert capsys.readouterr().out == ""


ODD: dict[str, Box] = {
    "numbers without bounds": lambda _: COINS.choice([math.nan, math.inf, -0.0, 5e-324, 1e308, 10**400, -(10**400)]),
    "lists of any length": lambda _: [COINS.random() for _ in range(COINS.randrange(30))],
    "words, bytes and nothing": lambda _: COINS.choice(["", "é", b"\0", None, True, [], [[], None]]),
    "long numbers": lambda _: COINS.getrandbits(5_000),
}


@pytest.mark.parametrize("box", ODD.values(), ids=list(ODD))
@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_outputs_of_any_kind_are_read_and_accuse_nobody(box: Box, delta: float) -> None:
    found = audit_mechanism(box, [0, 1, 2], epsilon=0.5, delta=delta, calls=1_000, rng=simulation(7))
    assert not found.alarm and found.calls == 1_000


def test_too_few_calls_for_an_alarm_are_refused() -> None:
    with pytest.raises(ValueError, match=r"`calls` must be at least [\d,]+, got 1,000: "):
        audit_mechanism(lambda value: value, [0, 1], epsilon=12.0, calls=1_000)


class Keeps:
    """A device that draws its noise once."""

    def __init__(self) -> None:
        self.noise = COINS.gauss(0.0, 100.0)

    def __call__(self, value: int) -> float:
        return value + self.noise


class Remembers:
    """A device that answers at random, and the same again as long as the value is the same."""

    def __init__(self) -> None:
        self.answers: dict[int, int] = {}

    def __call__(self, value: int) -> int:
        return self.answers.setdefault(value, COINS.randrange(1_000))


def honest(value: int) -> int:
    return value if COINS.random() < math.e / (1.0 + math.e) else 1 - value


DEVICES: dict[str, tuple[Callable[[], Box], str]] = {
    "keeps its noise": (Keeps, "equality with another report"),
    "remembers its answers": (Remembers, "equality with another report"),
    "starts with the same seed": (lambda: response(2, 1.0), "whole output"),
    "is fresh each time": (lambda: honest, ""),
}


@pytest.mark.exhaust
@pytest.mark.parametrize(("device", "event"), DEVICES.values(), ids=list(DEVICES))
def test_what_a_device_keeps_between_two_reports_shows(device: Callable[[], Box], event: str) -> None:
    found = audit_mechanism(device, [0, 1], epsilon=1.0, calls=4_000, devices=True, rng=simulation(8))
    assert found.events[:1] == ((event,) if event else ()) or event in found.events


@pytest.mark.exhaust
def test_noise_that_two_calls_share_shows() -> None:
    shared: list[float] = []

    def in_pairs(value: int) -> float:
        if not shared:
            shared.extend([COINS.gauss(0.0, 100.0)] * 2)
        return value + shared.pop()

    found = audit_mechanism(in_pairs, [0, 1], epsilon=1.0, calls=4_000, rng=simulation(9))
    assert found.alarm and found.event == "difference to another report at place 0"


def one_noise(value: int) -> list[float]:
    noise = COINS.gauss(0.0, 100.0)
    return [value + noise, noise, COINS.gauss(0.0, 100.0)]


def few_of_many(value: int) -> list[int]:
    """Every bit keeps the claim by itself; their number does not."""
    return [int(COINS.random() < 0.45 + 0.15 * value) for _ in range(40)]


def noisy_vector(values: list[float]) -> list[float]:
    return [round(value + COINS.gauss(0.0, 3.0), 2) for value in values]


def as_bytes(bit: int) -> bytes:
    return bytes([*(COINS.randrange(256) for _ in range(20)), COINS.randrange(2) * 2 + bit])


SIGNS = [[(-1.0) ** place for place in range(40)], [-((-1.0) ** place) for place in range(40)]]
MIDDLE = [[0.0] * 40, [0.0] * 20 + [20.0] + [0.0] * 19]
TOGETHER: dict[str, tuple[Box, list[Any], str]] = {
    "a difference": (one_noise, [0, 1], "difference of places 1 and 2"),
    "a sum": (few_of_many, [0, 1], "sum"),
    "a direction": (noisy_vector, SIGNS, "size along the difference of the inputs"),
    "a place that differs": (noisy_vector, MIDDLE, "place 21"),
    "bytes": (as_bytes, [0, 1], "value at place 21"),
}


@pytest.mark.exhaust
@pytest.mark.parametrize(("box", "inputs", "event"), TOGETHER.values(), ids=list(TOGETHER))
def test_places_are_looked_at_together(box: Box, inputs: list[Any], event: str) -> None:
    found = audit_mechanism(box, inputs, epsilon=1.0, calls=2_000, rng=simulation(10))
    assert found.alarm and event in found.event


def test_inputs_may_be_anything() -> None:
    found = audit_mechanism(lambda some: [len(some), 0], [{1}, {1, 2}], epsilon=1.0, calls=600, rng=simulation(13))
    assert found.alarm


@pytest.mark.exhaust
def test_a_search_finds_the_two_inputs_that_differ() -> None:
    def only_seven(value: int) -> int:
        return int(value == 7 or COINS.random() < 0.1)

    found = audit_mechanism(only_seven, list(range(10)), epsilon=1.0, calls=6_000, search=True, rng=simulation(11))
    assert found.alarm and 7 in found.inputs and len(found.inputs) == 2 and found.calls == 6_000


@pytest.mark.exhaust
@pytest.mark.parametrize(("delta", "claimed"), [(0.0, 1.0), (1e-3, 1.0), (0.0, 3.0)])
def test_what_it_says_it_sees_is_seen(delta: float, claimed: float) -> None:
    sees = audit_mechanism(lambda _: 0, [0, 1], epsilon=claimed, delta=delta, calls=4_000).sees
    for seed in range(3):  # each is missed with a chance of 1 in 100
        draw = random.Random(seed)
        found = audit_mechanism(
            lambda value, draw=draw: int(value == 1 and draw.random() < sees),
            [0, 1], epsilon=claimed, delta=delta, calls=4_000, rng=simulation(seed),
        )  # fmt: skip
        assert found.alarm


@pytest.mark.exhaust
def test_our_randomizers_are_audited_as_they_are() -> None:
    found = audit_mechanism(dt.LocalHashing(k=3, epsilon=5.0), [0, 1], epsilon=1.0, calls=2_000)
    assert found.alarm  # the lower end of a fresh seed for each report would be 0


def by_word(value: int, word: int) -> int:
    """Two bits of randomness: the truth in three cases of four."""
    return value if word else 1 - value


@pytest.mark.parametrize(
    ("claimed", "delta", "exact"), [(1.09, 0.0, math.log(3)), (1.1, 0.0, math.log(3)), (0.8, 0.25, math.log(2))]
)
def test_all_words_give_the_exact_epsilon(claimed: float, delta: float, exact: float) -> None:
    found = audit_mechanism(by_word, [0, 1], epsilon=claimed, delta=delta, words=4)
    assert found.lower == pytest.approx(exact, rel=1e-12) and found.alarm == (exact > claimed)
    assert found.calls == 8 and found.false_alarm == 0.0


def test_an_output_of_one_input_alone_is_no_epsilon_at_all() -> None:
    found = audit_mechanism(lambda value, word: value * (word == 7), [0, 1], epsilon=5.0, words=1_000)
    assert found.alarm and found.lower == math.inf
    assert not audit_mechanism(
        lambda value, word: value * (word == 7), [0, 1], epsilon=5.0, delta=1e-3, words=1_000
    ).alarm


def test_time_that_is_over_is_too_few_calls() -> None:
    with pytest.raises(ValueError, match="`calls` must be at least "):
        audit_mechanism(lambda value: value, [0, 1], epsilon=1.0, seconds=1e-9)
    found = audit_mechanism(lambda value: value, [0, 1], epsilon=1.0, calls=1_000, seconds=1e6)
    assert found.calls == 1_000 and found.alarm


def test_a_call_that_blocks_is_one_line() -> None:
    with pytest.raises(ValueError, match=r"failed on 0: _Blocked: no answer in 0\.1 seconds") as refused:
        audit_mechanism(lambda value: threading.Event().wait(), [0, 0], epsilon=1.0, patience=0.1)
    assert "\n" not in str(refused.value)


PROGRAMS = {
    "ends at once": ("", "ends without an answer"),
    "writes twice": ("import sys\nfor line in sys.stdin: print('1\\n2', flush=True)", "wrote more"),
    "writes no JSON": ("import sys\nfor line in sys.stdin: print('hello', flush=True)", "one JSON value a line"),
    "hangs": ("import sys\nfor line in sys.stdin: pass", "gives no answer in 0.3 seconds"),
}


@pytest.mark.parametrize(("code", "words"), PROGRAMS.values(), ids=list(PROGRAMS))
def test_a_program_that_cannot_be_audited_is_one_line(code: str, words: str, tmp_path: Path) -> None:
    place = tmp_path / "device.py"
    place.write_text(code)
    program = Program(f"{sys.executable} {place}", patience=0.3 if "hangs" in words or "gives" in words else 60.0)
    with pytest.raises(ValueError) as refused:
        audit_mechanism(program, [0, 1], epsilon=1.0, calls=1_000)
    program.close()
    assert words in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.exhaust
def test_a_program_that_dies_on_one_input_has_said_which(tmp_path: Path) -> None:
    place = tmp_path / "device.py"
    place.write_text("import sys\nfor line in sys.stdin:\n    print(1 // (int(line) - 3) * 0, flush=True)")
    program = Program(f"{sys.executable} -I -S {place}")
    found = audit_mechanism(program, [0, 3], epsilon=0.1, calls=60, false_alarm=0.1, rng=simulation(12))
    program.close()
    assert found.alarm and found.wrong == 0


def fails(value: int) -> int:
    raise RuntimeError("no\nvalue")


def leaves(value: int) -> int:
    raise SystemExit(3)


WRONG: dict[str, tuple[Box, list[Any], dict[str, Any], str]] = {
    "it fails": (fails, [0, 1], {}, "failed on "),
    "it ends the program": (leaves, [0, 1], {}, "failed on "),
    "it returns a set": (lambda value: {value}, [0, 1], {}, "must return numbers, texts or lists of them, got set"),
    "one input": (abs, [0], {}, "`inputs` must be two or more"),
    "a claim beyond all numbers": (abs, [0, 1], {"epsilon": 1e5}, "`epsilon` must be at most 30"),
    "a negative claim": (abs, [0, 1], {"epsilon": -1}, "`epsilon` must be"),
    "no level": (abs, [0, 1], {"false_alarm": 0}, "`false_alarm` must be"),
    "no calls": (abs, [0, 1], {"calls": 0}, "`calls` must be"),
}


@pytest.mark.parametrize(("box", "inputs", "given", "words"), WRONG.values(), ids=list(WRONG))
def test_a_mechanism_that_cannot_be_audited_is_one_line(
    box: Box, inputs: list[Any], given: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError) as refused:
        audit_mechanism(box, inputs, **{"epsilon": 1.0, "calls": 1_000, **given})
    assert words in str(refused.value) and "\n" not in str(refused.value)
