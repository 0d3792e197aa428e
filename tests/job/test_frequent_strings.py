"""Strings are found byte by byte, none that nobody holds, at the price of one level."""

from fractions import Fraction
from hashlib import blake2b
from itertools import product
from math import exp, log
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom
from tests.statistics import expect_caught, expect_share

from dovetail.account.dummies import dummies_delta
from dovetail.core.entropy import Entropy, KeyedEntropy, simulation
from dovetail.core.errors import DataError, ParameterError, UnsupportedError
from dovetail.core.noise import Noise, People
from dovetail.job import strings as frequent_strings
from dovetail.job.config import StringsSection
from dovetail.job.strings import Level, Tally, find_frequent_strings, levels_of, noise_at, search_levels
from dovetail.noise.local import Local
from dovetail.noise.shuffler import AddedNoise
from dovetail.randomize.krr import KRR
from dovetail.shuffle.sampling.dummies import AddedDummies, Dummies, TruncatedGaussian, TruncatedGeometric

COMMON = ["a", "ab", "abcdefgh", "Zürich", "ünïcode", "日本"]


def level_of(name: str, levels: int) -> int:
    return int(levels_of(pl.Series([name]), levels)[0])


def named(strings: list[str]) -> list[tuple[str, str]]:
    return [(f"device {place}", text) for place, text in enumerate(strings)]


@pytest.mark.exhaust
def test_common_strings_are_found_in_full_with_their_shares(rng: Entropy) -> None:
    strings = COMMON * 1500 + [f"rare {place}" for place in range(1000)]
    answer = find_frequent_strings(named(strings), epsilon=2.0, levels=10, rng=rng)
    found = {one.text: one for one in answer.found}
    assert set(COMMON) <= set(found) and all(found[text].complete for text in COMMON)
    assert all(abs(found[text].share - 0.15) < 0.07 for text in COMMON)
    assert (answer.guarantee.trust, answer.guarantee.colluding) == ("shuffler", float("inf"))
    assert answer.guarantee.epsilon <= 2.0 and sum(answer.groups) == 10_000
    assert set(answer.thresholds) == {15.0}


def test_every_group_that_is_asked_for_all_of_a_string_counts_in_its_share(rng: Entropy) -> None:
    people = named(["a", "abc", "abcdef"] * 2000)
    answer = find_frequent_strings(people, epsilon=2.0, levels=6, rng=rng)
    found, sizes = {one.text: one for one in answer.found}, answer.groups
    assert {text: one.asked for text, one in found.items()} == {
        "a": sum(sizes[1:]),
        "abc": sum(sizes[3:]),
        "abcdef": sizes[5],  # and whatever follows
    }
    for text, one in found.items():
        groups = sizes[len(text) if one.complete else 5 :]
        assert one.standard_error == pytest.approx(
            found["abcdef"].standard_error * sizes[5] * len(groups) ** 0.5 / sum(groups)
        )
        held = [other for name, other in people if level_of(name, 6) >= 6 - len(groups)].count(text)
        assert abs(one.share * one.asked - held) <= len(groups) * (
            answer.thresholds[0] - 1
        )  # the noise reaches no further


@pytest.mark.exhaust
@pytest.mark.parametrize("dummies", ["geometric", "gaussian"])
def test_no_string_is_found_that_nobody_holds(dummies: Any) -> None:
    strings = [f"{place * 7919 % 97:02d}" for place in range(3000)]
    held = {text[:length] for text in strings for length in (1, 2)}
    for seed in range(10):
        answer = find_frequent_strings(
            named(strings), epsilon=3.0, delta=1e-3, levels=3, dummies=dummies, rng=simulation(seed)
        )
        assert len(answer.found) > 30 and {one.text for one in answer.found} <= held


@pytest.mark.parametrize("dummies", ["geometric", "gaussian"])
def test_what_is_found_at_the_end_of_every_law_is_what_somebody_holds(
    dummies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AddedDummies, "people", lambda self, size, n: n)  # it would refuse so rare a batch
    groups = [["a", "ab", "b"], ["a", "ab", "b"], ["ab", "a", "b", "c"]]

    def ask(level: Level) -> Tally:
        assert isinstance(level.noise, AddedNoise)
        return level.tally(groups[level.number], simulation(1)) + 2 * level.noise.dummies.reach  # the most dummies

    asked = StringsSection(epsilon=3.0, delta=1e-3, dummies=dummies, levels=3, keep=1024)
    found = search_levels([3, 3, 4], ask, asked).found
    assert {one.text for one in found} == {"a", "ab", "b"}  # nobody of the first group holds "c"


@pytest.mark.parametrize("dummies", ["geometric", "gaussian"])
@pytest.mark.parametrize(("group", "pair"), [(0, ("ax", "bx")), (1, ("ax", "ay")), (1, ("ax", "bx"))])
def test_no_transcript_of_a_search_tells_more_than_is_promised(
    group: int, pair: tuple[str, str], dummies: Any
) -> None:
    """All numbers of dummies of both answers that a person may send, enumerated; of others what she cannot change."""
    others = [["ax"] * 12 + ["bx"] * 4, ["ax", "bx", "c"]]
    asked = StringsSection(epsilon=2.0, delta=0.05, dummies=dummies, levels=2, keep=4)
    noise = noise_at(asked, 514, 17)
    assert isinstance(noise, AddedNoise)
    reach, masses = noise.dummies.reach, noise.null_law(People(17))[1]

    def searched(own: str, drawn: tuple[int, ...]) -> tuple[bytes, float]:
        told: list[bytes] = []

        def ask(level: Level) -> Tally:
            mine, added = level.number == group, np.full(level.symbols, reach)
            changed = np.flatnonzero(level.tally(pair, simulation(1)))
            added[changed] = drawn if mine else reach
            sent = level.tally(others[level.number] + [own] * mine, simulation(1)) + added
            told.append(sent.tobytes())
            return sent

        sizes = [len(texts) + (place == group) for place, texts in enumerate(others)]
        promised = search_levels(sizes, ask, asked).guarantee.epsilon
        return b"".join(told), promised

    outcomes = list(product(range(masses.size), repeat=2))
    worlds: list[dict[bytes, float]] = [{}, {}]
    for world, own in zip(worlds, pair, strict=True):
        for drawn in outcomes:
            transcript, epsilon = searched(own, drawn)
            world[transcript] = world.get(transcript, 0.0) + masses[drawn[0]] * masses[drawn[1]]

    def delta(at: float) -> float:
        return sum(max(0.0, mass - exp(at) * worlds[1].get(key, 0.0)) for key, mass in worlds[0].items())

    assert delta(epsilon) <= 0.05 * (1.0 + 1e-9)
    assert delta(0.98 * epsilon) > 0.05  # a promise of 2 % less is caught


TERMS: dict[str, dict[str, Any]] = {  # of every noise, with as many people as it takes
    "geometric": {},
    "gaussian": {"dummies": "gaussian"},
    "sparse": {"dummies": "sparse"},
    "users": {"trust": "users", "epsilon": 8.0},
    "local": {"trust": "local"},
}


def noise_of(name: str, symbols: int, n: int) -> Noise:
    """The noise of a group; every person's own without a search for its epsilon."""
    asked = StringsSection(**{"epsilon": 2.0, "delta": 1e-2, **TERMS[name]})
    return Local(KRR(symbols, 6.0)) if name == "local" else noise_at(asked, symbols, n)


@pytest.mark.parametrize("name", TERMS)
def test_the_tallies_of_any_parts_of_a_group_add(name: str) -> None:
    texts, key = [["a", "ab", "b", "bc", "", "other"][place % 6] for place in range(60)], bytes(32)
    level = Level(1, 60, (b"a", b"b"), (b"",), noise_of(name, 516, 3000))
    whole = level.tally(texts, KeyedEntropy(key, np.arange(60)))
    parts = [np.arange(start, 60, 7)[::-1] for start in range(7)]
    split = [level.tally([texts[place] for place in part], KeyedEntropy(key, part)) for part in parts]
    assert np.array_equal(sum(reversed(split), level.tally([], simulation(1))), whole)
    assert (whole.sum() < 60, whole.sum() > 60) == (name == "sparse", name == "users")  # drops some, adds some


def test_longer_strings_are_found_as_their_beginning(rng: Entropy) -> None:
    answer = find_frequent_strings(named(["abcdef"] * 800), epsilon=2.0, levels=3, rng=rng)
    assert [(one.text, one.complete) for one in answer.found] == [("abc", False)]
    assert answer.found[0].share == pytest.approx(1.0, abs=0.1)


@pytest.mark.exhaust
def test_recall_is_the_product_of_the_levels() -> None:
    n, people = 1500, 18
    names = [(f"device {place}", "x" if place % (n // people) == 0 else f"{place}") for place in range(n)]
    dummies = Dummies(2, 2.0, 1e-3)
    law = np.array([float(one) for one in dummies.noise.weights]) / float(sum(dummies.noise.weights))
    sizes = [sum(text == "x" and level_of(name, 2) == level for name, text in names) for level in (0, 1)]
    kept = [sum(law[a] for a in range(law.size) if size + a - dummies.reach > dummies.reach) for size in sizes]
    recall = kept[0] * kept[1]
    assert 0.1 < recall < 0.99
    hits = []
    for seed in range(120):
        answer = find_frequent_strings(names, epsilon=2.0, delta=1e-3, levels=2, keep=300, rng=simulation(seed))
        hits.append(any(one.text == "x" for one in answer.found))
    expect_share(hits, recall, recall, against=[0.0])
    expect_caught(expect_share, hits, kept[0] ** 8, kept[0] ** 8, [recall])  # as if it were eight levels


@pytest.mark.parametrize("law", [TruncatedGeometric(1, 2, 1), TruncatedGaussian(Fraction(1), 1)])
def test_a_whole_tree_promises_what_one_level_does(law: TruncatedGeometric | TruncatedGaussian) -> None:
    """Two symbols at each of two levels, enumerated: the prefix that level 0 keeps decides what level 1 asks."""
    d = law.error_law(1.0)[1]

    def level(values: tuple[int, ...], weight: float) -> dict[tuple[int, ...], float]:
        counts = np.bincount(values, minlength=2)
        return {
            (int(counts[0]) + a, int(counts[1]) + b): weight * d[a] * d[b]
            for a, b in product(range(3), repeat=2)
        }  # fmt: skip

    def transcript(first: tuple[int, ...], second: tuple[tuple[int, int], ...]) -> dict[object, float]:
        found: dict[object, float] = {}
        for seen, mass in level(first, 1.0).items():
            kept = int(seen[1] > seen[0])
            held = tuple(value if prefix == kept else 0 for prefix, value in second)
            for then, more in level(held, mass).items():
                found[seen, then] = found.get((seen, then), 0.0) + more
        return found

    texts = list(product(range(2), repeat=2))
    for epsilon in (0.0, 0.7, 2.0 * log(2.0)):
        bound = dummies_delta(law, epsilon)
        for other, x, y in product(texts, repeat=3):
            for one, two in (
                (transcript((x[0], other[0]), (other,)), transcript((y[0], other[0]), (other,))),
                (transcript((other[0],), (x, other)), transcript((other[0],), (y, other))),
            ):
                exact = sum(max(0.0, mass - exp(epsilon) * two.get(key, 0.0)) for key, mass in one.items())
                assert exact <= bound


@pytest.mark.exhaust
def test_local_noise_finds_strings_of_many_people(rng: Entropy) -> None:
    people = named(["no", "yes"] * 6000)
    answer = find_frequent_strings(people, epsilon=3.0, trust="local", levels=4, keep=4, rng=rng)
    assert {"no", "yes"} <= {one.text for one in answer.found}
    assert answer.guarantee.trust == "local" and answer.guarantee.epsilon <= 3.0 < answer.guarantee.colluding


@pytest.mark.exhaust
def test_the_local_promise_is_that_of_the_level_that_spends_most(
    rng: Entropy, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[float] = []

    class Spied(KRR):
        def randomize(self, *values: Any, **options: Any) -> Any:
            used.append(self.epsilon)
            return super().randomize(*values, **options)

    monkeypatch.setattr(frequent_strings, "KRR", Spied)
    people = named(["home", "work", "gym"] * 1250)
    answer = find_frequent_strings(people, epsilon=1.0, trust="local", levels=3, keep=16, rng=rng)
    assert len(set(used)) == 3 and answer.guarantee.colluding >= max(used)


def test_groups_are_public_and_even() -> None:
    names = pl.Series([f"device {place}" for place in range(8000)])
    levels = levels_of(names, 8)
    assert np.bincount(levels).min() > binom.ppf(1e-9, 8000, 1 / 8)
    digests = [blake2b(name.encode(), key=b"dovetail level", digest_size=8).digest() for name in names[:3]]
    assert levels[:3].tolist() == [int.from_bytes(one, "little") % 8 for one in digests]


@pytest.mark.parametrize(
    ("people", "options", "error", "message"),
    [
        ([("a", "x"), ("a", "y")], {}, DataError, "1 names are repeated"),
        ([("a", 3)], {}, DataError, "pairs of two texts"),
        ([("a", "x"), ("b", "y")], {"levels": 8}, UnsupportedError, "fewer levels"),
        (named(["x"] * 99), {"levels": 0}, ParameterError, "`levels` must be"),
        (named(["x"] * 99), {"keep": 0}, ParameterError, "`keep` must be"),
        (named(["x"] * 99), {"trust": "people"}, ParameterError, "`trust` must be"),
        (named(["x"] * 99), {"trust": "users"}, UnsupportedError, "99 people, whose dummies hide fewer than the 258"),
        (named(["x"] * 99), {"trust": "users", "epsilon": 21.0}, ParameterError, "`epsilon` must be"),
        (named(["x"] * 99), {"dummies": "sparse", "epsilon": 41.0}, ParameterError, "`epsilon` must be"),
        (named(["x"] * 99), {"delta": 0.0}, ParameterError, "`delta` must be above 0"),
        (named(["x"] * 99), {"trust": np.array(["local"] * 2)}, ParameterError, "`trust` must be"),
        (named(["x"] * 99), {"dummies": "digits"}, ParameterError, "`dummies` must be"),
        (named(["x"] * 99), {"dummies": "sparse", "trust": "users"}, ParameterError, "`dummies` go with `trust`"),
        (named(["x"] * 99), {"dummies": "gaussian", "trust": "local"}, ParameterError, "`dummies` go with `trust`"),
        (named(["x"] * 99), {"epsilon": 0.0}, ParameterError, "`epsilon` must be"),
    ],
)
def test_what_cannot_be_searched_is_refused_in_one_line(
    people: list[tuple[str, str]], options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find_frequent_strings(people, **{"epsilon": 1.0, "levels": 1, **options})  # type: ignore[arg-type]
