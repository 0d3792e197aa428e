"""Whatever is typed into a public function of accounting, leakage and estimates: an answer, or one clear refusal."""

import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.tiers import EXHAUST

import dovetail as dt
from dovetail.account.dummies import user_dummies_for
from dovetail.account.gaussian_dummies import Message
from dovetail.account.questions import JointReport, OneQuestion
from dovetail.core.channel import DenseChannel
from dovetail.core.errors import DovetailError
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.subset_selection import SubsetSelection
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SeveralDummies,
    SparseDummies,
    TruncatedGaussian,
    UserDummies,
)

STRANGE: dict[str, Any] = {
    "None": None,
    "text": "abc",
    "no text": "",
    "bytes": b"1",
    "True": True,
    "nan": math.nan,
    "infinity": math.inf,
    "below all": -math.inf,
    "-1": -1,
    "0": 0,
    "1/2": 0.5,
    "1": 1,
    "least": 5e-324,
    "small": 1e-12,
    "near 1": 1.0 - 2.0**-53,
    "700": 700.0,
    "large": 1e13,
    "largest": 1.7e308,
    "beyond 64 bits": 10**40,
    "beyond doubles": 10**400,
    "fraction": Fraction(1, 3),
    "decimal": Decimal("1.5"),
    "complex": 1j,
    "single": np.float32(0.5),
    "byte": np.int8(3),
    "nothing": [],
    "list": [1, 2],
    "nested": [[1.0], [0.5, 0.5]],
    "mapping": {"a": 1},
    "object": object(),
    "empty array": np.zeros(0),
    "array": np.array([[0.5, 0.5], [0.5, 0.5]]),
    "type": dt.KRR,
    "randomizer": dt.KRR(3, 1.0),
    "same rows": DenseChannel([[0.5, 0.5], [0.5, 0.5]]),
}

FIRST = ["None", "text", "True", "nan", "-1", "beyond doubles", "complex", "nested", "mapping", "array", "type"]

KRR, LAPLACE, DUMMIES, SENT = dt.KRR(3, 1.0), dt.Laplace(0.0, 1.0, 1.0), Dummies(3, 1.0, 1e-6), UserDummies(3, 0.5)
MESSAGE = Message(Fraction(9), (1, 3), (18, 12))
NUMBERS, SYMBOLS = np.arange(40), np.arange(40) % 3
ROUND = dt.account.ShuffledRound(1.0, 100)

CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (dt.amplify, {"randomizer": KRR, "n": 100, "delta": 1e-6, "honest": 50, "adaptive": False, "delta0": 0.0}),
    (dt.compose, {"rounds": 2, "epsilon0": 1.0, "n": 100, "delta": 1e-6}),
    (dt.max_epsilon, {"epsilon": 1.0, "n": 100, "delta": 1e-6, "adaptive": False, "randomizer": KRR, "rounds": 1}),
    (dt.min_people, {"epsilon0": 2.0, "epsilon": 1.0, "delta": 1e-6, "adaptive": False, "rounds": 1}),
    (dt.vulnerability, {"channel": KRR, "n": 20, "prior": None, "adversary": "uninformed", "tries": 1, "gain": None}),
    (dt.estimate_frequencies, {"randomizer": KRR, "reports": SYMBOLS}),
    (dt.estimate_groups, {"randomizer": KRR, "reports": SYMBOLS, "labels": SYMBOLS, "mixing": None}),
    (dt.estimate_mean, {"randomizer": LAPLACE, "reports": NUMBERS}),
    (dt.estimate_group_means, {"randomizer": LAPLACE, "reports": NUMBERS, "labels": SYMBOLS, "mixing": None}),
    (
        dt.account.ShuffledRound,
        {"epsilon0": 1.0, "n": 100, "times": 1, "kind": None, "delta0": 0.0, "mechanism": None},
    ),
    (dt.account.ShuffledRound.of, {"mechanism": KRR, "n": 100, "times": 1}),
    (dt.account.amplify_mixture, {"k": 3, "mixture": [(50, 1.0), (50, 2.0)], "delta": 1e-6, "honest": None}),
    (dt.account.closed_forms, {"epsilon0": 1.0, "n": 100, "delta": 1e-6, "k": 3, "adaptive": False}),
    (dt.account.composed_delta, {"rounds": 2, "epsilon0": 1.0, "n": 100, "epsilon": 1.0}),
    (dt.account.dummies_delta, {"noise": DUMMIES.noise, "epsilon": 1.0, "rounds": 1}),
    (dt.account.dummies_epsilon, {"noise": DUMMIES.noise, "delta": 1e-6, "rounds": 1}),
    (dt.account.dummies_for_rounds, {"k": 3, "epsilon": 1.0, "delta": 1e-6, "rounds": 2}),
    (dt.account.dummies_guarantee, {"dummies": DUMMIES, "n": 100, "delta": 1e-6, "rounds": 1, "randomizer": KRR}),
    (dt.account.message_delta, {"message": MESSAGE, "epsilon": 1.0, "rounds": 1, "together": 1}),
    (dt.account.message_epsilon, {"message": MESSAGE, "delta": 1e-3, "rounds": 1}),
    (dt.account.message_for, {"weights": (1, 3), "epsilon": 1.0, "delta": 1e-3, "rounds": 1}),
    (dt.account.sparse_guarantee, {"dummies": SparseDummies(3, 1.0), "n": 100}),
    (dt.account.guess_bound, {"prior": [0.5, 0.5], "epsilon": 1.0, "delta": 0.0}),
    (dt.account.list_bounds, {"randomizer": KRR, "n": 100, "delta": 1e-6, "adaptive": False, "delta0": 0.0}),
    (dt.account.memoized_guarantee, {"permanent": KRR, "n": 100, "delta": 1e-6, "constant_values": True}),
    (dt.account.posterior_interval, {"prior": 0.5, "alpha": 1.0}),
    (dt.account.reidentification_bound, {"epsilon": 1.0, "alpha": 1.0, "r": 10, "k": 2}),
    (dt.account.renyi_curve, {"part": ROUND, "orders": [2.0]}),
    (user_dummies_for, {"k": 3, "epsilon": 1.0, "delta": 1e-6, "honest": 1000}),
    (dt.account.user_dummies_guarantee, {"dummies": SENT, "n": 1000, "delta": 1e-6, "honest": None}),
    (dt.leak.exact_vulnerability, {"channel": KRR.channel(), "n": 10}),
    (dt.estimate.best_mean, {"randomizer": LAPLACE, "reports": NUMBERS, "spread": None}),
    (dt.estimate.bootstrap_mean, {"randomizer": LAPLACE, "reports": NUMBERS, "resamples": 10}),
    (dt.estimate.estimate_classes, {"randomizers": {"a": LAPLACE}, "reports": NUMBERS, "labels": ["a"] * 40}),
    (dt.estimate.estimate_count_above, {"randomizer": LAPLACE, "reports": NUMBERS, "threshold": 0.5}),
    (dt.estimate.estimate_median, {"randomizer": LAPLACE, "reports": NUMBERS, "spread": None}),
    (dt.estimate.estimate_mixture, {"classes": [(40, KRR)], "reports": SYMBOLS}),
    (dt.estimate.estimate_quantile, {"randomizer": LAPLACE, "reports": NUMBERS, "share": 0.5, "level": 0.95}),
    (dt.estimate.estimate_sum, {"randomizer": LAPLACE, "reports": NUMBERS}),
    (dt.estimate.estimate_variance, {"randomizer": LAPLACE, "reports": NUMBERS}),
    (dt.estimate.estimate_with_dummies, {"dummies": DUMMIES, "batch": [0] * 140, "n": 60, "randomizer": None}),
    (dt.estimate.estimate_with_user_dummies, {"dummies": SENT, "batch": SYMBOLS, "n": 30, "honest": None}),
    (dt.estimate.hit_rate, {"shares": [[0.5, 0.5]], "values": [1]}),
    (dt.estimate.local_error, {"shares": [[0.5, 0.5]], "truth": [[0.25, 0.75]]}),
    (dt.estimate.mean_grid, {"n": 100, "variance": 1.0}),
    (dt.estimate.mean_with_dummies, {"dummies": DUMMIES, "batch": [0] * 140, "lower": 0.0, "upper": 1.0, "n": 60}),
    (dt.estimate.mean_with_user_dummies, {"dummies": SENT, "batch": SYMBOLS, "lower": 0.0, "upper": 1.0, "n": 30}),
    (dt.estimate.project_to_simplex, {"estimate": dt.estimate_frequencies(KRR, SYMBOLS)}),
    (dt.estimate.round_to_grid, {"values": [0.5], "lower": 0.0, "upper": 1.0, "points": 3}),
    (dt.estimate.unmix, {"estimate": dt.estimate_frequencies(KRR, SYMBOLS), "mixing": np.eye(3)}),
    (dt.KRR, {"k": 3, "epsilon": 1.0}),
    (dt.Unary, {"k": 3, "epsilon": 1.0, "encoding": "symmetric"}),
    (dt.Laplace, {"lower": 0.0, "upper": 1.0, "epsilon": 1.0, "grid": None}),
    (dt.Window, {"lower": 0.0, "upper": 1.0, "epsilon": 1.0, "window": None, "grid": None}),
    (Dummies, {"k": 3, "epsilon": 1.0, "delta": 1e-6}),
    (Message, {"scale": Fraction(9), "weights": (1, 3), "reaches": (9, 6)}),
    (GaussianDummies, {"k": 3, "noise": MESSAGE.laws[0]}),
    (SeveralDummies, {"noises": MESSAGE.laws, "sizes": (3, 3)}),
    (TruncatedGaussian, {"scale": Fraction(9), "reach": 9}),
    (SparseDummies, {"k": 3, "epsilon": 1.0}),
    (UserDummies, {"k": 3, "rate": 0.5}),
    (DenseChannel, {"rows": [[0.5, 0.5], [0.5, 0.5]]}),
    (OneQuestion, {"parts": (KRR, KRR), "chances": (0.5, 0.5)}),
    (JointReport, {"parts": (KRR, KRR)}),
]


LONG = [(dt.max_epsilon, "rounds", "700")]  # half a minute: rounds of a mechanism are composed for each epsilon0


def put(call: Callable[..., Any], given: dict[str, Any]) -> object:
    """The answer, or the refusal; any other exception passes."""
    try:
        return call(**given)
    except DovetailError as refusal:
        return refusal


@pytest.mark.exhaust
@pytest.mark.parametrize(("call", "given"), CALLS, ids=lambda one: getattr(one, "__qualname__", ""))
def test_what_is_asked_well_is_answered(call: Callable[..., Any], given: dict[str, Any]) -> None:
    assert not isinstance(put(call, given), Exception)


@pytest.mark.parametrize(
    "strange", [*FIRST, *(pytest.param(one, marks=EXHAUST) for one in STRANGE if one not in FIRST)]
)
def test_what_is_strange_is_answered_or_refused_in_one_line(strange: str) -> None:
    refusals = 0
    for call, given in CALLS:
        for name in given:
            if (call, name, strange) not in LONG:
                answer = put(call, {**given, name: STRANGE[strange]})
                refusals += isinstance(answer, DovetailError)
                assert not isinstance(answer, DovetailError) or "\n" not in str(answer)
    assert refusals


@pytest.mark.parametrize("adaptive", ["no", 0, None])
def test_a_word_is_not_taken_for_a_yes(adaptive: Any) -> None:
    with pytest.raises(dt.DovetailError, match="`adaptive` must be True or False"):
        dt.amplify(1.0, n=100, delta=1e-6, adaptive=adaptive)


def test_a_channel_that_tells_nothing_promises_everything() -> None:
    found = dt.amplify(STRANGE["same rows"], n=100, delta=1e-6)
    assert (found.epsilon, found.colluding, found.attack_lower) == (0.0, 0.0, 0.0)
    assert [bound.epsilon for bound in dt.account.list_bounds(STRANGE["same rows"], n=100, delta=1e-6)] == [0.0]


def test_next_to_no_epsilon_on_a_grid_is_accounted_for_without_an_overflow() -> None:
    found = dt.Accountant(dt.Laplace(0.0, 1.0, 1e-12), n=100).epsilon(1e-3)
    assert 0.0 <= found <= 1e-12


@EXHAUST
@pytest.mark.parametrize(("epsilon0", "delta"), [(1e-9, 1e-6), (1e-9, 1e-16), (1e-5, 1e-12)])
def test_rounds_that_tell_next_to_nothing_are_composed(epsilon0: float, delta: float) -> None:
    found = dt.compose(2, epsilon0=epsilon0, n=10**12, delta=delta)
    assert found.epsilon is not None and 0.0 <= found.attack_lower <= found.epsilon <= 2.0 * epsilon0


@pytest.mark.exhaust
def test_what_is_written_as_fractions_is_what_is_written_as_floats() -> None:
    fractions = dt.compose(2, epsilon0=Fraction(1, 2), n=1000, delta=Fraction(1, 2**20))  # type: ignore[arg-type]
    assert fractions == dt.compose(2, epsilon0=0.5, n=1000, delta=2.0**-20)
    assert dt.min_people(epsilon0=Fraction(2), epsilon=Fraction(1), delta=1e-6, rounds=2) > 1  # type: ignore[arg-type]


def random_questions(rng: random.Random, count: int) -> Iterator[tuple[Callable[..., Any], dict[str, Any]]]:
    for _ in range(count):
        epsilon = rng.choice([10 ** rng.uniform(-9.0, 2.8), rng.uniform(0.1, 8.0)])
        delta = rng.choice([10 ** rng.uniform(-30.0, 0.0), 10 ** rng.uniform(-300.0, 0.0), 0.0, 1.0 - 1e-9])
        n, rounds, k = (
            int(10 ** rng.uniform(0.0, 12.0)),
            int(10 ** rng.uniform(0.0, 9.0)),
            rng.choice([2, 3, 10, 10**5]),
        )
        kind = rng.choice([dt.KRR, dt.Unary, Hadamard, LocalHashing, SubsetSelection, dt.Laplace, dt.Window])
        place = {"lower": 0.0, "upper": 1.0} if kind in (dt.Laplace, dt.Window) else {"k": k}
        mechanism = put(kind, {**place, "epsilon": epsilon})
        subject = rng.choice([epsilon, mechanism, DenseChannel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]])])
        if not isinstance(subject, DovetailError):
            yield dt.amplify, {"randomizer": subject, "n": n, "delta": delta}
            yield dt.account.list_bounds, {"randomizer": subject, "n": n, "delta": delta}
        yield dt.compose, {"rounds": rounds, "epsilon0": epsilon, "n": n, "delta": delta}
        yield dt.max_epsilon, {"epsilon": epsilon, "n": n, "delta": delta}
        yield dt.min_people, {"epsilon0": 8.0 * rng.random(), "epsilon": epsilon, "delta": delta}
        yield user_dummies_for, {"k": k, "epsilon": epsilon, "delta": delta, "honest": n}
        yield Dummies, {"k": k, "epsilon": epsilon, "delta": delta}


@pytest.mark.exhaust
def test_whatever_sizes_are_asked_for_are_answered_or_refused_in_one_line() -> None:
    answered = 0
    for call, given in random_questions(random.Random("sizes"), 30):
        answer = put(call, given)
        answered += not isinstance(answer, DovetailError)
        assert "\n" not in str(answer) or not isinstance(answer, DovetailError)
    assert answered > 60
