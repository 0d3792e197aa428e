"""Verdicts on claims: each word where it belongs, and the formulas that public code uses."""

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail.audit.claim import audit_claim

POINTS = [(epsilon0, 10**power) for epsilon0 in (0.5, 1.0, 2.0, 4.0, 8.0) for power in range(1, 7)]
DELTA = 1e-6


def smaller_of_two(epsilon0: float, n: int) -> float:
    """The smaller of a mixture and eps0 sqrt(ln(1/delta)/n)."""
    mixture = (1 - 1 / n) * math.log1p(math.expm1(epsilon0) / n) + epsilon0 / n
    return min(mixture, epsilon0 * math.sqrt(math.log(1 / DELTA) / n))


def by_root(epsilon0: float, n: int) -> float:
    return epsilon0 / math.sqrt(n)


def by_exponential(epsilon0: float, n: int) -> float:
    return math.log1p(math.expm1(epsilon0) * (math.sqrt(2 * math.log(4 / DELTA) / n) + 1 / n))


def never(epsilon0: float, n: int) -> float:
    return epsilon0


@pytest.mark.parametrize(
    ("formula", "verdicts"),
    [
        (smaller_of_two, {"impossible": 30}),
        (by_root, {"impossible": 30}),
        (by_exponential, {"impossible": 5, "proved": 25}),
        (never, {"proved": 30}),
    ],
)
def test_formulas_that_are_in_use_are_judged(
    formula: Callable[[float, int], float], verdicts: dict[str, int]
) -> None:
    found = [
        audit_claim(epsilon=formula(epsilon0, n), delta=DELTA, epsilon0=epsilon0, n=n).verdict
        for epsilon0, n in POINTS
    ]
    assert Counter(found) == verdicts


CASES: dict[str, tuple[dict[str, Any], str]] = {
    "a formula": ({"epsilon": 0.86, "delta": 1e-5, "epsilon0": 8, "n": 1000}, "impossible"),
    "of what was not told": (
        {"epsilon": 0.86, "delta": 1e-5, "epsilon0": 8, "n": 1000, "randomizer": "unknown"},
        "unsupported",
    ),
    "proved of what was not told": ({"epsilon": 8, "epsilon0": 8, "n": 9, "randomizer": "unknown"}, "proved"),
    "between": ({"epsilon": 0.11, "delta": 1e-5, "epsilon0": 1, "n": 10_000, "rounds": 10}, "possible"),
    "fewer are honest": ({"epsilon": 0.1, "delta": 1e-6, "epsilon0": 1, "n": 10_000, "honest": 100}, "impossible"),
    "all are honest": ({"epsilon": 0.1, "delta": 1e-6, "epsilon0": 1, "n": 10_000}, "proved"),
    "a name": ({"epsilon": 0.024, "delta": 1e-6, "epsilon0": 1, "n": 10_000, "randomizer": "krr:k=10"}, "proved"),
    "without the name": ({"epsilon": 0.024, "delta": 1e-6, "epsilon0": 1, "n": 10_000}, "impossible"),
    "a name, refuted": (
        {"epsilon": 0.02, "delta": 1e-6, "epsilon0": 1, "n": 10_000, "randomizer": "krr:k=10"},
        "impossible",
    ),
    "cells of a histogram": ({"epsilon": 1, "epsilon0": [1, 1]}, "impossible"),
    "the sum": ({"epsilon": 0.3, "epsilon0": [0.1, 0.2]}, "proved"),
    "people in disjoint parts": ({"epsilon": 1, "epsilon0": [1, 1], "parts": "disjoint"}, "proved"),
    "cells of a histogram, replaced": ({"epsilon": 1.9, "epsilon0": [1, 1, 1], "parts": "by-value"}, "impossible"),
    "two cells of a histogram": ({"epsilon": 2, "epsilon0": [1, 1, 1], "parts": "by-value"}, "proved"),
    "shuffled parts": ({"epsilon": 9, "epsilon0": [1, 1], "parts": "disjoint", "n": 100}, "unknown"),
    "parts, one leaves": (
        {"epsilon": 9, "epsilon0": [1], "parts": "disjoint", "neighbours": "add-remove"},
        "unknown",
    ),
    "discrete Gaussian": ({"epsilon": 1.1, "delta": 1e-6, "noise": "discrete-gaussian", "scale": 4}, "proved"),
    "discrete Gaussian as the continuous one": (
        {"epsilon": 1.0625, "delta": 1e-6, "noise": "discrete-gaussian", "scale": 4},
        "impossible",
    ),
    "discrete Gaussian, many": (
        {"epsilon": 1.3, "delta": 1e-6, "noise": "discrete-gaussian", "scale": 4, "rounds": 9},
        "possible",
    ),
    "discrete Gaussian, never pure": ({"epsilon": 99, "noise": "discrete-gaussian", "scale": 4}, "impossible"),
    "discrete Gaussian, next to no noise": (
        {"epsilon": 1, "delta": 1e-6, "noise": "discrete-gaussian", "scale": 0.01},
        "impossible",
    ),
    "discrete Gaussian, too wide": (
        {"epsilon": 1, "delta": 1e-6, "noise": "discrete-gaussian", "scale": 1e6},
        "unknown",
    ),
    "discrete Laplace": ({"epsilon": 1, "noise": "discrete-laplace", "scale": 1}, "proved"),
    "a clipped sum, one more": (
        {"epsilon": 1, "noise": "laplace", "clip": 3, "scale": 3, "neighbours": "add-remove"},
        "proved",
    ),
    "a clipped sum, replaced": (
        {"epsilon": 1.9, "noise": "laplace", "clip": 3, "scale": 3, "neighbours": "replace"},
        "impossible",
    ),
    "noise on a sample": ({"epsilon": 0.16, "noise": "laplace", "scale": 1, "rate": 0.1}, "proved"),
    "noise on a sample, scaled": ({"epsilon": 0.15, "noise": "laplace", "scale": 1, "rate": 0.1}, "impossible"),
    "noise on a sample, by delta": (
        {"epsilon": 0.01, "delta": 0.2, "noise": "gaussian", "scale": 1, "rate": 0.1},
        "proved",
    ),
    "noise on a sample of fixed size, one more": (
        {
            "epsilon": 9,
            "noise": "laplace",
            "scale": 1,
            "rate": 0.1,
            "sampling": "fixed-size",
            "neighbours": "add-remove",
        },
        "unknown",
    ),
    "noise on many samples": ({"epsilon": 9, "noise": "laplace", "scale": 1, "rate": 0.1, "rounds": 2}, "unknown"),
    "sampling scales": ({"epsilon": 0.1, "epsilon0": 1, "rate": 0.1}, "impossible"),
    "sampling": ({"epsilon": 0.16, "epsilon0": 1, "rate": 0.1}, "proved"),
    "sampled, other neighbours": (
        {"epsilon": 0.16, "epsilon0": 1, "rate": 0.1, "neighbours": "replace"},
        "unknown",
    ),
    "a sample of fixed size": (
        {"epsilon": 0.16, "epsilon0": 1, "rate": 0.1, "neighbours": "replace", "sampling": "fixed-size"},
        "proved",
    ),
    "sampled twice": ({"epsilon": 9, "epsilon0": 1, "rate": 0.1, "rounds": 2}, "unknown"),
    "a batch that grows": ({"epsilon": 9, "epsilon0": 1, "n": 100, "neighbours": "add-remove"}, "unknown"),
    "the classic Gaussian": (
        {"epsilon": 10, "delta": 1e-5, "noise": "gaussian", "scale": math.sqrt(2 * math.log(1.25e5)) / 10},
        "impossible",
    ),
    "the classic Gaussian in its range": (
        {"epsilon": 1, "delta": 1e-5, "noise": "gaussian", "scale": math.sqrt(2 * math.log(1.25e5))},
        "proved",
    ),
    "a pure Gaussian": ({"epsilon": 99, "noise": "gaussian", "scale": 9}, "impossible"),
    "Laplace": ({"epsilon": 0.3, "noise": "laplace", "sensitivity": 3, "scale": 10}, "proved"),
    "Laplace, one for ten": ({"epsilon": 0.3, "noise": "laplace", "sensitivity": 30, "scale": 10}, "impossible"),
    "geometric": ({"epsilon": 1, "noise": "geometric", "scale": 1}, "proved"),
    "too accurate": ({"epsilon": 0.4, "noise": "unbiased", "scale": 2}, "impossible"),
    "accurate enough, and not known": ({"epsilon": 4, "noise": "unbiased", "scale": 2}, "unknown"),
    "accurate, with delta": ({"epsilon": 4, "delta": 0.1, "noise": "unbiased", "scale": 2}, "unknown"),
}


@pytest.mark.parametrize(("given", "verdict"), CASES.values(), ids=list(CASES))
def test_the_verdict_is_the_right_word(given: dict[str, Any], verdict: str) -> None:
    found = dt.audit_claim(**given)
    assert found.verdict == verdict and found.sentence.startswith(f"{verdict}: ") and found.sentence.endswith(".")
    if verdict == "proved":
        assert found.upper is not None and found.upper <= found.epsilon
    if verdict in ("impossible", "unsupported"):
        assert found.lower is not None and found.lower > found.epsilon


def test_the_sentence_names_the_witness_and_what_the_attack_needs() -> None:
    found = audit_claim(epsilon=0.86, delta=1e-5, epsilon0=8, n=1000)
    assert (
        found.sentence.startswith("impossible: this attack needs at least 7.99: ") and found.witness in found.sentence
    )
    assert "not the software" in audit_claim(epsilon=8, epsilon0=8, n=1000).sentence


def test_a_randomizer_may_be_given_itself() -> None:
    by_name = audit_claim(epsilon=0.3, delta=1e-6, epsilon0=2, n=1000, randomizer="krr:k=4")
    assert audit_claim(epsilon=0.3, delta=1e-6, n=1000, randomizer=dt.KRR(k=4, epsilon=2.0)) == by_name


def test_a_delta_that_publishes_somebody_is_noted() -> None:
    assert "publishing" in " ".join(audit_claim(epsilon=1, delta=0.01, epsilon0=1, n=1000).notes)
    assert audit_claim(epsilon=1, delta=1e-6, epsilon0=1, n=1000).notes == ()


def test_the_document_has_words_where_there_is_no_number() -> None:
    document = audit_claim(epsilon=1, noise="gaussian", scale=1).document()
    assert document["lower"] == "inf" and document["upper"]["value"] is None and document["verdict"] == "impossible"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "needs `epsilon0`"),
    "both": ({"epsilon0": 1, "noise": "laplace", "scale": 1}, "not both"),
    "no promise": ({"epsilon0": 0}, "`epsilon0` must be a number above 0"),
    "no promises": ({"epsilon0": []}, "one number or more"),
    "a text": ({"epsilon0": "big"}, "`epsilon0` must be"),
    "nobody": ({"epsilon0": 1, "n": 0}, "`n` must be a whole number, at least 1"),
    "more honest than there are": ({"epsilon0": 1, "n": 5, "honest": 6}, "`honest` must be"),
    "honest alone": ({"epsilon0": 1, "honest": 6}, "`honest` goes with `n`"),
    "no rounds": ({"epsilon0": 1, "rounds": 0}, "`rounds` must be"),
    "scale without noise": ({"epsilon0": 1, "scale": 2}, "takes no `scale`"),
    "people with noise": ({"noise": "laplace", "scale": 2, "n": 3}, "takes no `n`"),
    "no scale": ({"noise": "laplace"}, "`noise` needs `scale`"),
    "a scale of 0": ({"noise": "laplace", "scale": 0}, "`scale` must be a finite number above 0"),
    "unknown noise": ({"noise": "laplac", "scale": 1}, "did you mean 'laplace'"),
    "clip and sensitivity": (
        {"noise": "laplace", "scale": 1, "clip": 1, "sensitivity": 1, "neighbours": "replace"},
        "`clip` stands instead of `sensitivity`",
    ),
    "clip alone": ({"noise": "laplace", "scale": 1, "clip": 1}, "needs `neighbours`"),
    "unknown parts": ({"epsilon0": [1, 1], "parts": "halves"}, "`parts` must be one of same-people"),
    "parts in an array": ({"epsilon0": [1, 1], "parts": np.array(["disjoint"] * 2)}, "`parts` must be one of same"),
    "neighbours in an array": ({"epsilon0": 1, "neighbours": np.array(["replace"] * 2)}, "`neighbours` must be"),
    "parts of noise": ({"noise": "laplace", "scale": 1, "parts": "disjoint"}, "takes no `parts`"),
    "half a shift": ({"noise": "discrete-gaussian", "scale": 1, "sensitivity": 0.5}, "`sensitivity` must be a whole"),
    "half a count": ({"noise": "geometric", "scale": 1, "sensitivity": 0.5}, "`sensitivity` must be a whole number"),
    "unknown randomizer": ({"epsilon0": 1, "randomizer": "kr:k=2"}, "did you mean 'krr'"),
    "next to no noise": ({"noise": "laplace", "scale": 1e-300, "sensitivity": 1e300}, "`scale` must be at least"),
    "no settings": ({"epsilon0": 1, "randomizer": "budget_laplace"}, "budget_laplace needs beta, rho, such as"),
    "no k": ({"epsilon0": 1, "randomizer": "krr"}, "krr needs k, such as krr:k=10"),
    "epsilon twice": ({"epsilon0": 1, "randomizer": "krr:k=2,epsilon=1"}, "`epsilon0`, and stands there alone"),
    "epsilon beside a randomizer": ({"epsilon0": 1, "randomizer": dt.KRR(k=2, epsilon=1.0)}, "brings its epsilon"),
    "a number for a name": ({"epsilon0": 1, "randomizer": 5}, "`randomizer` must be any, unknown or the name"),
    "a rate above 1": ({"epsilon0": 1, "rate": 2}, "`rate` must be"),
    "several with a rate": ({"epsilon0": [1, 2], "rate": 0.1}, "one number where there is a `rate`"),
    "unknown sampling": ({"epsilon0": 1, "rate": 0.1, "sampling": ["x"]}, "`sampling` must be one of"),
    "unknown neighbours": ({"epsilon0": 1, "neighbours": "next door"}, "`neighbours` must be"),
    "no share": ({"epsilon0": 1, "delta": 1}, "`delta` must be"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=list(WRONG))
def test_a_bad_claim_is_refused_in_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(dt.DovetailError) as refused:
        audit_claim(**{"epsilon": 1.0, **given})
    assert words in str(refused.value) and "\n" not in str(refused.value)
