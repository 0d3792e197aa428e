"""What a search for strings says of itself holds behind every noise: counts, thresholds, errors, recall, promises."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.statistics import expect_at_least, expect_broken, expect_caught, expect_law, expect_share, rng_of

from dovetail.account.dummies import most_values, user_dummies_for
from dovetail.core.entropy import simulation
from dovetail.core.errors import UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.job import strings
from dovetail.job.config import StringsSection
from dovetail.job.strings import (
    Level,
    Search,
    Truth,
    beginnings_at,
    evaluation_of,
    find_frequent_strings,
    levels_of,
    noise_at,
    promise_at,
    recall_of,
    symbols_of,
    threshold_of,
    widest,
)
from dovetail.noise.local import Local
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.randomize.krr import KRR

TERMS: dict[str, dict[str, Any]] = {
    "geometric": {"epsilon": 1.0},
    "sparse": {"epsilon": 1.0, "dummies": "sparse"},
    "users": {"epsilon": 8.0, "trust": "users"},
    "local": {"epsilon": 2.0, "trust": "local"},
}
PEOPLE = {"geometric": 1500, "sparse": 1500, "users": 6000, "local": 3000}
UNBOUNDED = ["sparse", "users", "local"]


def section(name: str, **terms: Any) -> StringsSection:
    return StringsSection(**{"delta": 1e-2, "levels": 3, "keep": 16, **TERMS[name], **terms})


def noise(name: str, symbols: int, n: int) -> Noise:
    """The noise of a group; every person's own without a search for its epsilon."""
    return Local(KRR(symbols, 5.0)) if name == "local" else noise_at(section(name), symbols, n)


def added(made: Noise, n: int) -> tuple[float, NDArray[np.float64], float]:
    """By hand: the chance that a report is kept and true, masses of nobody's reports of an answer, their mean."""
    a = np.arange(200)
    if isinstance(made, SparseNoise):
        q = float(made.dummies.more)
        return float(made.dummies.kept), (1.0 - q) * q**a, q / (1.0 - q)
    if isinstance(made, UserNoise):
        share = made.dummies.rate / made.dummies.k
        return 1.0, binom.pmf(a, n, share), n * share
    assert isinstance(made, Local)
    keep = made.own.channel().p
    lie = (1.0 - keep) / (made.own.k - 1)
    return keep - lie, binom.pmf(a, n, lie), n * lie


@pytest.mark.parametrize("name", UNBOUNDED)
def test_the_count_of_a_string_has_the_law_that_thresholds_and_errors_rest_on(name: str) -> None:
    """Of 4 people who hold one, and of nobody; the same law without what drops or adds reports is caught."""
    n, symbols = {"sparse": 40, "users": 1500, "local": 40}[name], symbols_of(1)
    made = noise(name, symbols, n)
    level = Level(0, n, (b"",), (), made)
    texts, rng = ["a"] * 4 + ["b"] * (n - 4), rng_of(f"counts behind {name}")
    seen = [level.complete(level.tally(texts, rng), rng)[[97, 122]] for _ in range(1500)]
    contrast, alone, _ = added(made, n - 4 if name == "local" else n)
    kept = made.own.channel().p if isinstance(made, Local) else contrast
    for found, held in ((np.array(seen)[:, 0], 4), (np.array(seen)[:, 1], 0)):
        null = added(made, n)[1] if held == 0 else alone
        law = np.convolve(binom.pmf(np.arange(held + 1), held, kept), null)[:12]
        law = np.append(law, 1.0 - law.sum())
        counts = np.bincount(np.minimum(found.astype(int), 12), minlength=13)
        expect_law(counts, law)
        bare = np.eye(1, 13, held)[0] if name != "local" else np.append(binom.pmf(np.arange(12), held, 0.5 * kept), 0)
        expect_broken(counts, bare / bare.sum())


@pytest.mark.parametrize("name", UNBOUNDED)
def test_the_law_of_nobody_s_count_is_unbiased_and_whole(name: str) -> None:
    n, symbols = 3000, symbols_of(1)
    made = noise(name, symbols, n)
    counts, masses = made.null_law(People(n))
    contrast, by_hand, mean = added(made, n)
    reports = np.rint(counts * contrast + mean).astype(int)
    assert abs(masses.sum() - 1.0) < 1e-12 and abs(masses @ counts) < 1e-9
    inside = reports < 200
    assert np.allclose(masses[inside], by_hand[reports[inside]], rtol=1e-9, atol=0.0)
    zeros = made.expected(np.zeros(symbols), People(n)) if name != "local" else None
    assert zeros is None or zeros.counts[0] == pytest.approx(mean)


@pytest.mark.parametrize("name", UNBOUNDED)
@pytest.mark.parametrize("symbols", [258, 700])
def test_a_beginning_goes_on_from_the_least_count_that_noise_rarely_reaches(name: str, symbols: int) -> None:
    made = noise(name, symbols, n := 4000)
    contrast, masses, mean = added(made, n)
    tau = threshold_of(made, symbols, n)
    reports = round(tau * contrast + mean)
    assert tau == pytest.approx((reports - mean) / contrast)
    assert symbols * masses[reports:].sum() <= strings.FALSE_ALARMS < symbols * masses[reports - 1 :].sum()


def test_noise_that_is_bounded_is_never_reached() -> None:
    made = noise("geometric", 258, 500)
    counts, masses = made.null_law(People(500))
    assert threshold_of(made, 258, 500) == counts[-1] + 1.0 and abs(masses.sum() - 1.0) < 1e-12


def drawn(trials: int, n: int, shares: dict[str, float], name: str) -> Iterator[list[tuple[str, str]]]:
    """The same names with other strings each time."""
    for seed in range(trials):
        rng = np.random.default_rng([seed, *name.encode()])
        held = rng.choice(len(shares), n, p=list(shares.values()))
        yield [(f"device {i}", list(shares)[place]) for i, place in enumerate(held)]


@pytest.fixture
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of as many people and symbols is worked out once."""
    made, asked = {}, strings.noise_at

    def noise_at(one: StringsSection, symbols: int, n: int) -> Noise:
        key = (one.model_dump_json(), symbols, n)
        if key not in made:
            made[key] = asked(one, symbols, n)
        return made[key]

    monkeypatch.setattr(strings, "noise_at", noise_at)
    monkeypatch.setattr(strings, "promise_at", cache_of_promises())


def cache_of_promises() -> Any:
    made: dict[Any, Any] = {}

    def promise(asked: StringsSection, noise: Noise, n: int) -> Any:
        key = (repr(noise), n)
        if key not in made:
            made[key] = promise_at(asked, noise, n)
        return made[key]

    return promise


@pytest.mark.exhaust
@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("name", TERMS)
def test_intervals_of_shares_cover_and_found_strings_are_held(name: str) -> None:
    """80 % intervals of every row; errors of a count of nobody, or of one group for the rest, are caught."""
    asked, n, trials, z = section(name), PEOPLE[name], 1000, 1.2815515655446004
    shares = {"ab": 0.4, "cd": 0.3, "abcd": 0.2, "q": 0.1}
    hits: dict[str, list[bool]] = {}
    short: dict[str, list[bool]] = {}
    false = []
    for seed, people in enumerate(drawn(trials, n, shares, name)):
        answer = find_frequent_strings(people, **asked.model_dump(), rng=simulation(seed))
        search, texts = Search.of(answer, asked), Counter(text for _, text in people)
        truth = Truth.of(search, texts, np.inf)
        false.append(bool((truth.held == 0).any()))
        told = evaluation_of(search, n, truth, "simulation").estimates.overall
        rows = list(zip(told.labels, told.value, told.standard_error, told.truth or [], strict=True))
        for place, (label, value, error, true) in enumerate(rows):
            if label[:3] not in ("ab", "abc", "(al"):
                continue
            hits.setdefault(label, []).append(abs(value - true) <= z * error)
            one = answer.found[place] if place < len(answer.found) else None
            nobody = 0.0 if one is None else one.standard_error
            wrong = np.sqrt(max(error**2 - nobody**2, 0.0)) if one else 0.3 * error
            short.setdefault(label, []).append(abs(value - true) <= z * wrong)
    assert set(hits) == {"ab", "abc...", "(all other strings)"}
    for label, covered in hits.items():
        assert len(covered) > 0.98 * trials
        expect_at_least(covered, 0.8)
        if name in ("sparse", "local") or label == "(all other strings)":
            expect_caught(expect_at_least, short[label], 0.8)
    expect_share(false, 0.0, strings.FALSE_ALARMS, against=[0.12])


@pytest.mark.exhaust
@pytest.mark.usefixtures("once")
@pytest.mark.parametrize("name", TERMS)
def test_a_string_is_found_as_often_as_is_said(name: str) -> None:
    """With 60 % or so; recall of a level alone, as if there were one, is caught."""
    n, trials = PEOPLE[name], 600
    asked = section(name, levels=2, keep=2)
    groups = levels_of(pl.Series([f"device {i}" for i in range(3 * n)]), 2).tolist()
    names = [
        f"device {i}" for level in (0, 1) for i in [at for at, one in enumerate(groups) if one == level][: n // 2]
    ]
    made, symbols = widest(asked, n)
    low, high = 1e-4, 0.9
    for _ in range(40):
        middle = 0.5 * (low + high)
        enough = recall_of(middle, n=n, levels=2, noise=made, symbols=symbols) >= 0.6
        low, high = (low, middle) if enough else (middle, high)
    hits = []
    for seed in range(trials):
        held = np.random.default_rng([seed, *name.encode()]).random(n) < high
        people = [
            (one, "x" if yes else f"\u0416{place}") for place, (one, yes) in enumerate(zip(names, held, strict=True))
        ]
        found = find_frequent_strings(people, **asked.model_dump(), rng=simulation(seed)).found
        hits.append(any(one.text == "x" for one in found))
    narrow = noise_at(asked, symbols_of(1), n // 2)
    most = recall_of(high, n=n, levels=2, noise=narrow, symbols=symbols_of(1))
    assert 0.6 - 1e-6 <= most < 0.76
    expect_share(hits, 0.6 - 1e-6, most, against=[0.4])
    expect_caught(expect_share, hits, np.sqrt(most), 1.0, [0.6])


def test_people_hide_no_more_beginnings_than_their_dummies_are_enough_for() -> None:
    for n, epsilon, delta in [(2000, 8.0, 1e-2), (10_000, 2.0, 1e-6), (125_000, 1.0, 1e-6)]:
        most = most_values(epsilon=epsilon, delta=delta, honest=n)
        assert user_dummies_for(k=most, epsilon=epsilon, delta=delta, honest=n).rate <= 1.0
        with pytest.raises(Exception, match="`honest` must be at least"):
            user_dummies_for(k=round(1.02 * most) + 1, epsilon=epsilon, delta=delta, honest=n)
        asked = section("users", epsilon=epsilon, delta=delta, keep=1024)
        assert symbols_of(beginnings_at(asked, n)) <= most < symbols_of(beginnings_at(asked, n) + 1)
    assert most_values(epsilon=1.0, delta=1e-6, honest=2) == 0


def test_no_more_beginnings_go_on_than_the_next_group_hides() -> None:
    asked = section("users")
    people = [(f"device {i}", "abcd"[i % 4] * 3) for i in range(6000)]
    answer = find_frequent_strings(people, **asked.model_dump(), rng=simulation(1))
    assert {beginnings_at(asked, size) for size in answer.groups} == {1}
    assert 1 <= len(answer.found) <= 2  # the last level keeps all that are frequent
    few = section("users", levels=12)
    with pytest.raises(UnsupportedError, match="whose dummies hide fewer than the 258 answers of a byte"):
        find_frequent_strings(people, **few.model_dump())


@pytest.mark.parametrize("name", ["sparse", "users"])
def test_a_search_promises_what_its_worst_group_does(name: str) -> None:
    asked, n = section(name), PEOPLE[name]
    people = [(f"device {i}", ("ab", "abc", "b")[i % 3]) for i in range(n)]
    answer = find_frequent_strings(people, **asked.model_dump(), rng=simulation(1))
    assert answer.guarantee.epsilon <= asked.epsilon and answer.guarantee.colluding == np.inf
    assert answer.guarantee.trust == ("shuffler" if name == "sparse" else "users")
    assert answer.guarantee.delta == (0.0 if name == "sparse" else asked.delta)
    if name == "users":
        assert answer.guarantee.honest_n in answer.groups
    each = [promise_at(asked, noise_at(asked, 258, size), size).epsilon for size in answer.groups]
    assert answer.guarantee.epsilon >= max(each) * (1.0 - 1e-9)
