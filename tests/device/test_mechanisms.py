"""Mechanisms have the published law, reports of one length, and refuse without repeating what they were given."""

import pickle
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from tests.device.words import ChosenBits, SimulatedBits
from tests.statistics import expect_broken, expect_law
from tests.tiers import one_in

from dovetail.core.entropy import Entropy
from dovetail.core.stages import RANDOMIZERS
from dovetail.question.correlation import Correlation
from dovetail.question.distribution import Distribution
from dovetail.question.nonresponse import Nonresponse
from dovetail.question.regression import Regression
from dovetail.randomize.budget_laplace import BudgetLaplace
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.sampling.open_reports import decode_reports, from_device
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.randomize.unary import Unary
from dovetail.randomize.window import Window
from dovetail_device.entropy import system_entropy
from dovetail_protocol.errors import DataError, ParameterError
from dovetail_protocol.exact_thresholds import WORD, exp_bracket
from dovetail_protocol.mechanism import Mechanism, kind_of, mechanism, names
from dovetail_protocol.mechanisms import budget_laplace as budget_mechanism
from dovetail_protocol.mechanisms import hadamard as hadamard_mechanism
from dovetail_protocol.mechanisms import krr as krr_mechanism
from dovetail_protocol.mechanisms import laplace as laplace_mechanism
from dovetail_protocol.mechanisms import local_hashing as local_hashing_mechanism
from dovetail_protocol.mechanisms.krr import respond
from dovetail_protocol.mechanisms.laplace import FARTHEST, geometric
from dovetail_protocol.mechanisms.unary import coins

KINDS: list[Any] = [*RANDOMIZERS, *(kind for kind in VECTOR_RANDOMIZERS if kind.name in names())]
EXAMPLES = [
    *(example for kind in KINDS for example in kind.examples()),
    KRR(300, 2.0),
    Hadamard(1000, 2.0),
    Unary(100, 1.0, "symmetric"),
    LocalHashing(50, 6.0),
    Laplace(-1.0, 1.0, 3.0),
]
MECHANISM = [randomizer.device for randomizer in EXAMPLES]
TABULATED = [r for kind in (KRR, Hadamard) for r in kind.examples()]
DRAWS = 3000


def values(mechanism: Mechanism) -> list[Any]:
    """The domain, or points all over it."""
    if hasattr(mechanism, "k"):
        return list(range(mechanism.k))
    if hasattr(mechanism, "d"):
        return [[length] * mechanism.d for length in (0.0, 1e-320, 0.3, -1e308)]
    return np.linspace(mechanism.lower, mechanism.upper, 50).tolist()


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(DataError) as refused:
        call(*arguments)
    return str(refused.value)


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_a_mechanism_and_its_randomizer_are_one_object_for_two_ends(randomizer: Any) -> None:
    assert from_device(randomizer.device) == randomizer
    assert from_device(randomizer.device).device == randomizer.device
    assert repr(randomizer.device) == repr(randomizer)
    assert pickle.loads(pickle.dumps(randomizer.device)) == randomizer.device


def test_every_name_is_registered_once() -> None:
    assert {kind.name: kind.examples()[0].device.__class__ for kind in KINDS} == {
        name: kind_of(name) for name in names()
    }


@pytest.mark.parametrize("randomizer", TABULATED, ids=repr)
def test_reports_have_the_law_of_the_channel(randomizer: Any, rng: Entropy) -> None:
    law, words = randomizer.channel().matrix(), SimulatedBits(rng)
    for value in {0, randomizer.k - 1}:
        reports = [randomizer.device.randomize(value, words) for _ in range(DRAWS)]
        expect_law(np.bincount(reports, minlength=law.shape[1]), law[value])


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_steps_of_randomized_response_are_exactly_its_masses(k: int) -> None:
    keep, lie = masses = krr_mechanism.KRR(k, 1.3).masses
    assert keep + (k - 1) * lie == WORD
    edges = [0, *(keep + j * lie for j in range(k))]  # the words of report j: edges[j] .. edges[j + 1] - 1
    for report, (first, after) in enumerate(pairwise(edges)):
        for word in (first, after - 1):
            assert respond(0, k, masses=masses, words=ChosenBits([word])) == report


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", [Unary(3, 1.0), Unary(5, 2.0, "symmetric")], ids=repr)
def test_bits_have_the_law_of_the_bit_channel(randomizer: Unary, rng: Entropy) -> None:
    other, own = randomizer.bit_channel().matrix()
    words, value = SimulatedBits(rng), 1
    reports = np.array([list(randomizer.device.randomize(value, words)) for _ in range(DRAWS)], dtype=np.uint8)
    ones = randomizer.tally(reports)
    for x in range(randomizer.k):
        expect_law([DRAWS - ones[x], ones[x]], own if x == value else other)
    expect_broken([DRAWS - ones[0], ones[0]], own)


@pytest.mark.parametrize("mass", [0, 1, 1 << 63, 0xABCDEF0123456789, WORD - 1])
def test_a_coin_is_one_exactly_below_its_mass(mass: int, rng: Entropy) -> None:
    numbers = [n for n in (mass - 1, mass, mass + 1, 0, WORD - 1, *rng.words(50).tolist()) if 0 <= n < WORD]
    zeros = [sum((1 - (n >> place & 1)) << i for i, n in enumerate(numbers)) for place in range(64)]
    ones = coins(mass, len(numbers), ChosenBits(zeros))
    assert [ones >> i & 1 for i in range(len(numbers))] == [int(n < mass) for n in numbers]


NUMBERS = [*Laplace.examples(), *BudgetLaplace.examples(), *Window.examples()]


@pytest.mark.exhaust
@pytest.mark.parametrize("randomizer", one_in(3, NUMBERS), ids=repr)
def test_numeric_reports_have_the_law_of_the_log_density(randomizer: Any, rng: Entropy) -> None:
    value, words = randomizer.lower + randomizer.step, SimulatedBits(rng)
    cells = np.arange(randomizer.steps + 1)
    law = np.exp(randomizer.log_density(cells, value))
    reports = np.array([randomizer.device.randomize(value, words) for _ in range(DRAWS)])
    seen = np.bincount(reports[(reports >= 0) & (reports <= randomizer.steps)], minlength=cells.size)
    expect_law([*seen, DRAWS - seen.sum()], [*law, max(0.0, 1 - law.sum())])


@pytest.mark.exhaust
def test_noise_of_one_sign_is_caught(rng: Entropy) -> None:
    laplace, words = Laplace.examples()[0], SimulatedBits(rng)
    cells = np.arange(-5, 10)
    law = np.exp(laplace.log_density(cells, 0.0))
    wrong = np.array([geometric(laplace.rate, words) + geometric(laplace.rate, words) for _ in range(DRAWS)])
    seen = [np.count_nonzero(wrong == cell) for cell in cells]
    expect_broken([*seen, DRAWS - sum(seen)], [*law, 1 - law.sum()])


@pytest.mark.parametrize("mechanism", MECHANISM, ids=repr)
def test_reports_have_one_length_and_survive_the_way(mechanism: Mechanism, rng: Entropy) -> None:
    words = SimulatedBits(rng)
    for value in values(mechanism):
        report = mechanism.randomize(value, words)
        data = mechanism.encode(report)
        assert type(data) is bytes and len(data) == mechanism.report_bytes
        assert mechanism.decode(data) == report
    own = mechanism.randomize(values(mechanism)[0], system_entropy())
    assert mechanism.decode(mechanism.encode(own)) == own


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 1.0, 1.4, 2.1, 5.0, 10.9])
def test_sizes_are_those_of_the_papers(epsilon: float) -> None:
    assert local_hashing_mechanism.LocalHashing(5, epsilon).g == round(np.exp(epsilon)) + 1
    for k in (2, 3, 100, 1 << 20):
        hadamard = hadamard_mechanism.Hadamard(k, epsilon)
        assert hadamard.blocks == 2 ** max(0, np.ceil(np.log2(min(np.exp(epsilon), 2 * k))) - 1)
        assert hadamard.width == 2 ** np.ceil(np.log2(k // hadamard.blocks + (k % hadamard.blocks > 0) + 1))


@pytest.mark.parametrize("j", [1, 5, 11, 21])
def test_sizes_next_to_a_power_of_two_come_from_exact_arithmetic(j: int) -> None:
    epsilon = j * np.log(2.0)  # next to a budget where e^epsilon is a power of two
    low, high = exp_bracket(Fraction(float(epsilon)))
    assert low > 1 << j or high < 1 << j
    assert hadamard_mechanism.Hadamard(1 << 25, epsilon).blocks == (1 << j if low > 1 << j else 1 << j - 1)


@pytest.mark.parametrize("kind", [krr_mechanism.KRR, hadamard_mechanism.Hadamard])
@pytest.mark.parametrize("k", [2, 255, 256, 257, 65_536, 1 << 31])
def test_the_first_and_last_report_fit_and_the_next_does_not(kind: Any, k: int) -> None:
    mechanism = kind(k, 6.0)
    last = (k if kind is krr_mechanism.KRR else mechanism.blocks * mechanism.width) - 1
    for report in (0, last):
        assert mechanism.decode(mechanism.encode(report)) == report
        assert len(mechanism.encode(report)) == mechanism.report_bytes
    assert 256 ** (mechanism.report_bytes - 1) <= max(last, 1) < 256**mechanism.report_bytes
    for beyond in (-1, last + 1, 0.5, None, "1", float("nan")):
        assert "`report` must be" in refusal(mechanism.encode, beyond)


def test_noise_beyond_eight_bytes_is_cut_off() -> None:
    laplace = laplace_mechanism.Laplace(0.0, 1.0, 1.0)
    for report, sent in ((FARTHEST + 1, FARTHEST), (-(10**30), -FARTHEST), (np.int64(-5), -5)):
        assert laplace.decode(laplace.encode(report)) == sent
    for wrong in (1.0, True, "3", None):
        assert "whole number of grid steps" in refusal(laplace.encode, wrong)
    for far in (FARTHEST + 1, -FARTHEST - 1):
        assert "from -2^62 to 2^62" in refusal(laplace.decode, far.to_bytes(8, signed=True))


@pytest.mark.parametrize("mechanism", MECHANISM, ids=repr)
def test_bytes_of_another_length_or_type_are_refused(mechanism: Mechanism) -> None:
    size = mechanism.report_bytes
    for data in (b"", bytes(size - 1), bytes(size + 1), "0" * size, None, bytearray(size), 5):
        assert f"must be {size:,} bytes" in refusal(mechanism.decode, data)


@pytest.mark.parametrize("randomizer", EXAMPLES, ids=repr)
def test_many_reports_are_decoded_as_one_by_one(randomizer: Any, rng: Entropy) -> None:
    mechanism = randomizer.device
    sent = [
        list(mechanism.encode(mechanism.randomize(value, SimulatedBits(rng)))) for value in values(mechanism)[:50]
    ]
    garbage = rng.narrow(300 * mechanism.report_bytes, np.uint8).reshape(300, -1)
    encoded = np.concatenate([np.array(sent, dtype=np.uint8), garbage])
    found, valid = decode_reports(mechanism, encoded)
    assert valid[: len(sent)].all()
    expected = []
    for row, good in zip(encoded, valid, strict=True):
        if good:
            expected.append(mechanism.decode(row.tobytes()))
        else:
            assert "`report` must be" in refusal(mechanism.decode, row.tobytes())
    shape = found.tolist() if found.ndim == 1 else [tuple(row) for row in found.tolist()]
    assert shape == [tuple(report) if isinstance(report, bytes) else report for report in expected]
    if hasattr(randomizer, "check_reports"):
        np.testing.assert_array_equal(randomizer.check_reports(found), found)
    else:
        assert randomizer.decode(found).shape == found.shape
    for wrong in (encoded[:, 1:], encoded.astype(np.int64), encoded[0]):
        assert "`encoded` must be uint8" in refusal(decode_reports, mechanism, wrong)


@pytest.mark.parametrize("mechanism", [m for m in MECHANISM if hasattr(m, "k")], ids=repr)
def test_symbols_outside_the_domain_are_refused_without_repeating_them(mechanism: Any) -> None:
    k = mechanism.k
    wrong = [k, 74_913, -74_913, 0.74913, float("nan"), float("inf"), 1e300, "74913", None, [1], 1j, np.array([1])]
    for value in [*wrong, *([True] if k > 2 else [])]:
        for call in (mechanism.check, lambda value: mechanism.randomize(value, system_entropy())):
            assert refusal(call, value) == f"`value` must be a whole number in 0..{k - 1}."
    for value in (1, 1.0, np.int64(1), np.uint8(1), np.float32(1), Fraction(1), *([True] if k == 2 else [])):
        assert mechanism.check(value) == 1 and type(mechanism.check(value)) is int


@pytest.mark.parametrize("mechanism", [m for m in MECHANISM if hasattr(m, "lower")], ids=repr)
def test_numbers_outside_the_range_are_refused_without_repeating_them(mechanism: Any) -> None:
    above = np.nextafter(mechanism.upper, np.inf)
    for value in (above, -74913.5, 10**400, float("nan"), float("inf"), "1", None, True, [1.0], 1j):
        message = f"`value` must be a number in [{mechanism.lower!r}, {mechanism.upper!r}]."
        assert refusal(mechanism.check, value) == refusal(mechanism.randomize, value, system_entropy()) == message
    for value in (mechanism.lower, np.float64(mechanism.upper), Fraction(mechanism.upper)):
        assert type(mechanism.check(value)) is float


@pytest.mark.parametrize("mechanism", [m for m in MECHANISM if hasattr(m, "d")], ids=repr)
def test_arrays_of_another_length_or_kind_are_refused_without_repeating_them(mechanism: Any) -> None:
    d = mechanism.d
    good = [0.5] * d
    wrong = ([*good, 74913.5], [], 74913.5, "0" * d, b"0" * d, dict.fromkeys(range(d)), None, np.zeros((d, 1)))
    for bad in (float("nan"), float("inf"), 10**400, "1", None, True, [1.0], 1j):
        wrong += ([bad, *good[1:]],)
    for value in wrong:
        message = f"`value` must be {d} finite numbers."
        assert refusal(mechanism.check, value) == refusal(mechanism.randomize, value, system_entropy()) == message
    for value in (good, tuple(good), np.array(good), np.array(good, dtype=np.float32), [Fraction(1, 2)] * d):
        assert mechanism.check(value) == tuple(good) and {type(one) for one in mechanism.check(value)} == {float}


@pytest.mark.parametrize("precision", ["guaranteed", "published"])
@pytest.mark.parametrize(("lower", "upper"), [(1.0, 1.5), (-10.0, -1.0), (1e74, 1.5e74), (1e6, 1e6 + 1)])
def test_clamping_is_decided_as_the_threshold_says(lower: float, upper: float, precision: Any) -> None:
    """The threshold is a root found in floats and raised by 1e-12: an independent way to the same decision."""
    checked = 0
    for beta, rho in product([0.01, 0.5, 0.999], [1e-9, 0.3, 0.9, 1 - 1e-12]):
        public: dict[str, Any] = {"beta": beta, "rho": rho, "grid": (upper - lower) / 2**20}
        any_budget = BudgetLaplace(lower, upper, epsilon=1.0, precision="published", **public)
        threshold = getattr(any_budget, f"{precision}_threshold")
        if 1e-9 < threshold <= 700.0:
            for factor, clamps in ((1.0, False), (1 - 1e-11, True)):
                asked = BudgetLaplace(lower, upper, epsilon=threshold * factor, precision=precision, **public)
                assert asked.clamps == clamps
                checked += 1
    assert checked >= 4


@pytest.mark.parametrize("upper", [1e-76, 1e76, 1e308])
@pytest.mark.parametrize("randomizer", [Window, Laplace, Correlation, Distribution, Nonresponse, Regression])
def test_a_range_whose_errors_no_number_could_tell_is_refused(randomizer: Any, upper: float) -> None:
    further: dict[str, Any] = {
        Correlation: {"other": "b", "other_lower": 0.0, "other_upper": 1.0},
        Regression: {"others": {"b": [0.0, 1.0]}},
        Window: {"epsilon": 1.0},
        Laplace: {"epsilon": 1.0},
    }.get(randomizer, {})
    with pytest.raises(ParameterError, match=r"above (`lower` = )?0.0 by 1e-75 to 1e[+]?75"):
        randomizer(0.0, upper, **further)


def test_a_value_that_dwarfs_its_range_is_precise_at_any_budget() -> None:
    assert not budget_mechanism.BudgetLaplace(1e74, 1e74 + 2e58, 1e-6, 0.5, 0.9).clamps


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("kr", {}, r"`mechanism` must be one of .*krr.*, got 'kr'; did you mean 'krr'\?"),
        (None, {}, "`mechanism` must be one of"),
        (["krr"], {}, "`mechanism` must be one of"),
        (
            "krr",
            {"k": 3, "epsilom": 1.0},
            r"krr has no parameter `epsilom`; it takes k, epsilon; did you mean 'epsilon'\?",
        ),
        ("krr", {"k": 3}, r"krr needs the parameter `epsilon`\."),
        ("krr", {"k": 3, "epsilon": -1}, r"`epsilon` must be"),
        ("unary", {"k": 3, "epsilon": 1, "encoding": "best"}, r"`encoding` must be"),
    ],
)
def test_a_mechanism_that_nobody_knows_is_refused_with_the_nearest(name: Any, parameters: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mechanism(name, **parameters)


def test_mechanisms_are_made_by_name() -> None:
    assert mechanism("laplace", lower=0, upper=1, epsilon=1) == laplace_mechanism.Laplace(0.0, 1.0, 1.0)


def test_numbers_below_a_bound_are_drawn_by_rejection() -> None:
    assert [ChosenBits([7, 5, n]).below(5) for n in range(5)] == list(range(5))
    assert ChosenBits([0]).below(1) == 0
    with pytest.raises(ParameterError, match="`bound` must be"):
        system_entropy().below(0)


def test_the_device_draws_as_many_bits_as_asked(rng: Entropy) -> None:
    for count in (0, 1, 7, 8, 64, 100):
        ored, anded = 0, (1 << count) - 1
        for _ in range(100):  # a bit that never changes has probability 2^-99
            drawn = system_entropy().bits(count)
            ored, anded = ored | drawn, anded & drawn
        assert ored == (1 << count) - 1 and anded == 0
