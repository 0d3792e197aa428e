"""The device's closest of random directions: its law and promise by every word, and that it is the analyst's."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.device.words import ChosenBits, SimulatedBits
from tests.randomize.test_closest_direction import CELLS, along_law, signed
from tests.statistics import expect_broken, expect_law, rng_of

from dovetail.randomize.sampling.vector_randomizer import directions_of
from dovetail.randomize.vectors.closest_direction import ClosestDirection as Analyst
from dovetail_protocol.errors import ParameterError
from dovetail_protocol.exact_thresholds import WORD, exp_bracket
from dovetail_protocol.mechanism import stated_in_full
from dovetail_protocol.mechanisms.closest_direction import MOST_DRAWN, ClosestDirection, closest

WORDS = (2, 4, 6)
VECTORS = ((-1.0, 0.5), (-0.4, 0.0), (0.3, 7.0), (0.0, 0.0), (1e308, -1e308))


def exact_law(device: ClosestDirection, vector: tuple[float, ...]) -> dict[int, Fraction]:
    """The law of a report where each drawn number is one of three: all ways to draw them, all words."""
    keep, lie = device.masses
    k, law = 2 * device.axes, dict[int, Fraction]()
    edges = [(0, keep), *((keep + offset * lie, lie) for offset in range(k - 1))]
    assert sum(mass for _, mass in edges) == WORD
    for drawn in product(WORDS, repeat=device.axes):
        for first, mass in edges:
            reports = {device.randomize(vector, ChosenBits([*drawn, word])) for word in (first, first + mass - 1)}
            (report,) = reports
            law[report] = law.get(report, Fraction(0)) + Fraction(mass, WORD * len(WORDS) ** device.axes)
    return law


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_no_vector_makes_a_report_likelier_than_is_promised_whatever_numbers_are_drawn(axes: int) -> None:
    """All words of a small world, in fractions: the largest ratio of two vectors is at most e^epsilon."""
    device = ClosestDirection(2, 1.0, 1.5, axes)
    laws = [exact_law(device, vector) for vector in VECTORS]
    known = {word | sign for word in WORDS for sign in (0, 1)}
    assert all(set(law) == known and sum(law.values()) == 1 for law in laws)
    ratios = [max(law[y] for law in laws) / min(law[y] for law in laws) for y in known]
    assert Fraction(3, 2) < max(ratios) <= exp_bracket(Fraction(device.epsilon))[0]


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_the_direction_that_is_held_is_the_analysts_closest_one(d: int) -> None:
    """To seven digits of the inner product, which is all that the analyst's directions have."""
    device, rng = ClosestDirection(d, 2.0, 3.0, 6), rng_of(f"held {d}")
    noise = Analyst(d, 2.0, 3.0, axes=6)
    for length in (0.0, 1e-300, 0.5, 1.9, 2.1, 1e300):
        vector = np.array([length * (-1) ** place / math.sqrt(d) for place in range(d)])
        lifted = device.lifted(device.check(vector))
        assert lifted == pytest.approx(noise._lifted(vector[None])[0], abs=1e-6)
        assert math.hypot(*lifted) == pytest.approx(1.0)
        for _ in range(20):
            drawn = (rng.words(6) & ~np.uint64(1)).tolist()
            inner = directions_of(np.array(drawn, dtype=np.uint64), d + 1).astype(float) @ np.array(lifted)
            held = closest(drawn, lifted)
            along = inner[held >> 1] * (1 - 2 * (held & 1))
            assert along == pytest.approx(np.abs(inner).max(), rel=1e-5, abs=1e-5)


def test_reports_of_a_device_have_the_law_along_the_vector() -> None:
    """False alarm 1e-9; a device of an epsilon larger by a quarter would be caught."""
    noise, rng = Analyst(2, 1.0, 3.0, axes=5), SimulatedBits(rng_of("a device along the vector"))
    vector, device = [0.6, -0.5], noise.device
    lifted = np.array([*vector, math.sqrt(1.0 - 0.61)])
    reports = np.array([device.randomize(vector, rng) for _ in range(12_000)], dtype=np.uint64)
    seen = np.histogram(signed(reports, 2) @ lifted, CELLS)[0]
    expect_law(seen, along_law(noise))
    expect_broken(seen, along_law(Analyst(2, 1.0, 3.75, axes=5)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"d": 0}, "`d` must be"),
        ({"d": 65_537}, "`d` must be"),
        ({"radius": 0.0}, "`radius` must be"),
        ({"radius": math.inf}, "`radius` must be"),
        ({"epsilon": 0.0}, "`epsilon` must be"),
        ({"axes": 0}, "`axes` must be"),
        ({"axes": 4097}, "`axes` must be"),
        ({"axes": 2.5}, "`axes` must be"),
        ({"axes": ...}, "needs the parameter `axes`"),
        ({"d": 65_536, "axes": 256}, r"`axes` must be at most 255 for 65,536 coordinates"),
        ({"epsilon": 1e-20}, "too small for 64-bit probabilities"),
    ],
    ids=str,
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float], words: str) -> None:
    given = {"d": 3, "radius": 1.0, "epsilon": 1.0, "axes": 2} | wrong
    with pytest.raises(ParameterError, match=words):
        stated_in_full("closest_direction", **{key: one for key, one in given.items() if one is not ...})
    assert MOST_DRAWN == 255 * 65_537 + 65_281
