"""The distribution of a number: what is promised of a tree, its quantiles, and every way to ask for them."""

import json
import math
from functools import partial
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln
from scipy.stats import binom

import dovetail as dt
from dovetail.account.dummies import UserDummiesLaw, dummies_delta, dummies_for_rounds, user_dummies_for
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DataError, ParameterError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.missing import Missing
from dovetail.core.noise import Noise, People
from dovetail.estimate.distribution import Crossings, Tree, of_rounds, quantiles
from dovetail.job.collection import noise_of
from dovetail.job.question_plan import plan_question
from dovetail.noise.classes import EpsilonClasses
from dovetail.noise.gaussian import GaussianNoise
from dovetail.noise.local import Local
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.question.distribution import Distribution
from dovetail.randomize.krr import KRR
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.report.html import render_html
from dovetail.shuffle.sampling.dummies import (
    Dummies,
    GaussianDummies,
    SparseDummies,
    TruncatedGaussian,
    TruncatedGeometric,
    UserDummies,
)

N = 3000
X = np.random.default_rng(3).lognormal(2.0, 0.5, N).clip(0.0, 31.9)
TABLE = pl.DataFrame({"id": range(N), "x": X, "age": [20, 21, 22] * (N // 3)})
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "x", "lower": 0.0, "upper": 32.0},
    "question": {"ask": "distribution", "bins": 64, "levels": 2},
    "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6},
}


# What is promised: own enumeration of whole releases, which knows nothing of accounts.


@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.7, 2.0])
def test_the_promise_of_a_tree_is_that_of_as_many_rounds(epsilon: float) -> None:
    """Two levels, four bins, every pair of neighbours among two people; equality where all nodes differ."""
    law, tree = TruncatedGeometric(1, 2, 1), Tree((2, 2))
    masses = np.array(law.weights) / sum(law.weights)
    worst = dummies_delta(law, max(epsilon, 0.0), rounds=2)
    releases: dict[tuple[int, ...], np.ndarray] = {}

    def release(bins: tuple[int, ...]) -> np.ndarray:
        """The law of all counts (5, .., 5): true ones and dummies."""
        counts = np.bincount(tree.symbols(np.array(bins)).ravel(), minlength=6)
        found = np.ones(())
        for one in counts:
            found = np.multiply.outer(found, np.pad(masses, (one, 2 - one)))
        return found

    for other, here, there in product(range(4), range(4), range(4)):
        p, q = (
            releases.setdefault(bins, release(bins))
            for bins in (tuple(sorted((other, here))), tuple(sorted((other, there))))
        )
        delta = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())
        if epsilon >= 0.0:
            assert delta <= worst + 1e-12
        if epsilon >= 0.0 and here // 2 != there // 2:
            assert delta == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_promise_of_dummies_of_people_is_kept_by_people_of_several_symbols(epsilon: float) -> None:
    """60 honest people, six nodes, numbers that differ in both nodes: all counts up to 26 of the four that change."""
    honest, most = 60, 26
    z = np.indices((most + 1,) * 4)  # two nodes here, two nodes there
    rest = honest - z.sum(axis=0)
    law = gammaln(honest + 1) - gammaln(z + 1).sum(axis=0) - gammaln(np.maximum(rest, 0) + 1)
    dummies = np.where(rest >= 0, np.exp(law + z.sum(axis=0) * math.log(1 / 6) + rest * math.log(1 / 3)), 0.0)
    here = np.zeros_like(dummies)
    here[1:, :, 1:, :] = dummies[:-1, :, :-1, :]  # her own symbols beside them
    there = np.zeros_like(dummies)
    there[:, 1:, :, 1:] = dummies[:, :-1, :, :-1]
    assert here.sum() > 0.9999
    delta = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())  # of larger counts more
    said = UserDummiesLaw(6, honest, 1.0, symbols=2).ends(epsilon)
    assert said.lower < delta < said.upper


@pytest.mark.exhaust
def test_a_collection_promises_what_was_asked_with_all_its_symbols(tmp_path: Path) -> None:
    for trust in ("shuffler", "users"):
        config = {**CONFIG, "promise": {**CONFIG["promise"], "trust": trust, "delta": 1e-3}}
        config["question"] = {**CONFIG["question"], "bins": 16}
        report = dt.run(config, table=TABLE, ledger=tmp_path / trust)
        central = report.evaluation.central
        assert isinstance(central, CentralDP) and 0.98 < central.epsilon <= 1.0
        made = report.sanitized_description["dummies" if trust == "shuffler" else "user_dummies"]
        if trust == "shuffler":  # as if a symbol were all: far more is lost
            alone = Dummies(20, made["epsilon"], made["delta"])
            assert dummies_delta(alone.noise, 1.0, rounds=2) <= 1e-3 < dummies_delta(alone.noise, 0.5, rounds=2)
        else:
            assert (
                UserDummiesLaw(20, N, made["rate"], 2).delta(1.0)
                <= 1e-3
                < UserDummiesLaw(20, N, 0.9 * made["rate"], 2).delta(1.0)
            )


# What is learned.


def noises(levels: int) -> list[Noise]:
    size = Distribution(0.0, 32.0, bins=16, levels=levels).tree.size
    made = {
        law: dummies_for_rounds(k=size, epsilon=1.0, delta=1e-3, rounds=levels, law=law)
        for law in ("geometric", "gaussian")
    }
    dummies = [noise_of(OpenAnswers(size), one, symbols=levels) for one in made.values()]
    people = UserNoise(UserDummies(size, 0.6), OpenAnswers(size), levels)
    alone = [Local(KRR(size, 3.0)), SparseNoise(SparseDummies(size, 1.0), OpenAnswers(size))]
    return [*dummies, people, *(alone if levels == 1 else [])]


@pytest.mark.parametrize("n", [1, pytest.param(3, marks=pytest.mark.exhaust)])
def test_intervals_of_quantiles_cover_for_every_data_set(n: int) -> None:
    """Four bins in two levels, dummies of known law: the coverage itself, by every draw of dummies."""
    law, tree = TruncatedGeometric(1, 2, 1), Tree((2, 2))
    noise = ShufflerNoise(Dummies(tree.size, 1.2, 0.4), OpenAnswers(tree.size), 2)
    object.__setattr__(noise.dummies, "noise", law)
    masses = np.array(law.weights) / sum(law.weights)
    drawn = np.array(list(product((-1, 0, 1), repeat=tree.size)))
    chance = masses[drawn + 1].prod(axis=1)
    shares, edges, people = np.array([0.3, 0.5, 1.0]), np.linspace(0.0, 4.0, 5), People(n, pl.DataFrame())
    cached: dict[Any, Any] = {}

    def reach(held: np.ndarray, tail: float) -> Any:
        key = (tail, *held.tolist())
        if key not in cached:
            cached[key] = noise.reach(*tree.classes, held, people, tail=tail)
        return cached[key]

    for bins in combinations_with_replacement(range(4), n):
        counts = np.bincount(tree.symbols(np.array(bins)).ravel(), minlength=tree.size)
        true = np.quantile(bins, shares, method="inverted_cdf")
        covered = np.zeros((2, len(shares)))
        for z, row in ((1.96, covered[0]), (0.6745, covered[1])):
            for added, mass in zip(drawn, chance, strict=True):
                function = np.cumsum(tree.fitted(counts + added, n))[:-1] / n
                found = Crossings(function, edges, shares, n, reach)
                low, high = found.interval(quantiles(function, edges, shares), z)
                row += mass * ((low <= true) & (true + 1 <= high))
        assert (covered[0] >= 0.95).all() and (covered[1] >= 0.5).all(), bins


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("noise", "levels"),
    [(one, levels) for levels in (1, 2) for one in noises(levels)],
    ids=lambda one: getattr(one, "name", one),
)
def test_the_function_is_unbiased_and_varies_as_it_says(noise: Noise, levels: int) -> None:
    """A right implementation fails with a chance below 1e-6: six standard errors in 15 places of eight cases."""
    asked, rng, people, repeats = (
        Distribution(0.0, 32.0, bins=16, levels=levels),
        dt.simulation(4),
        People(N, pl.DataFrame()),
        150,
    )
    true = np.array([(end > X).mean() for end in asked.edges[1:-1]])
    found = []
    for _ in range(repeats):
        batch = noise.complete(noise.randomize(asked.answer(X, rng), people, rng), rng)
        assert batch.ndim == 1
        found.append(asked.function(noise, noise.tally(batch), people))
    values, said = np.array(found), noise.deviation(*asked.tree.classes, people)
    assert (np.abs(values.mean(axis=0) - true) < 6.0 * said / math.sqrt(repeats)).all()
    spread = values.std(axis=0)
    assert (spread < said * (1.0 + 6.0 / math.sqrt(2.0 * repeats))).all()
    if noise.trust != "local" and noise.kept == 1.0:  # of reports it depends on what people hold
        assert (spread > said * (1.0 - 6.0 / math.sqrt(2.0 * repeats))).all()
    assert asked.error(noise, people) == pytest.approx(said.max())


@pytest.mark.exhaust
@pytest.mark.parametrize(
    ("noise", "levels"),
    [(one, levels) for levels in (1, 2) for one in noises(levels)],
    ids=lambda one: getattr(one, "name", one),
)
def test_intervals_cover(noise: Noise, levels: int) -> None:
    """A right implementation fails with a chance below 1e-8 in each of 40 tails."""
    asked, rng, people = Distribution(0.0, 32.0, bins=16, levels=levels), dt.simulation(5), People(N, pl.DataFrame())
    true, covered, repeats = np.array(asked.truth(X)), np.zeros(5), 400
    for _ in range(repeats):
        batch = noise.complete(noise.randomize(asked.answer(X, rng), people, rng), rng)
        low, high = asked.learned(noise, noise.tally(batch), people).interval(0.95)
        covered += (low <= true) & (true <= high)
    assert (covered >= binom.ppf(1e-8, repeats, 0.95)).all()


@pytest.mark.exhaust
def test_quantiles_are_of_exactly_these_people(tmp_path: Path) -> None:
    report = dt.run({**CONFIG, "mode": "rehearsal", "seed": 1}, table=TABLE, ledger=tmp_path)
    overall = report.evaluation.estimates.overall
    assert overall.labels == ["5 % quantile", "lower quartile", "median", "upper quartile", "95 % quantile"]
    assert overall.truth == np.quantile(X, [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf").tolist()
    for value, true, (low, high) in zip(overall.value, overall.truth, overall.interval, strict=True):
        assert low <= value <= high and low <= true <= high and high - low < 3.0
    curve = report.evaluation.estimates.curve
    assert isinstance(curve, dict) and len(curve["place"]) == 63
    inside = [
        low <= (end > X).mean() <= high
        for end, low, high in zip(curve["place"], curve["low"], curve["high"], strict=True)
    ]
    assert sum(inside) >= 50  # each misses with probability .05; all together seldom
    assert "Share of people below a number" in render_html(report.document())


def test_a_value_at_an_end_of_a_bin_lies_above_it_and_the_largest_in_the_last_bin() -> None:
    asked = Distribution(0.0, 8.0, bins=8, levels=3)
    assert asked.answer(np.array([0.0, 1.0, 7.999, 8.0]), dt.simulation(1)).tolist() == [
        [0, 2, 6], [0, 2, 7], [1, 5, 13], [1, 5, 13],
    ]  # fmt: skip
    names = asked.names or []
    assert (names[0], names[2], names[13]) == ("0 to 4", "0 to 2", "7 to 8") and len(set(names)) == 14


# Every way to ask for it.


@pytest.mark.exhaust
def test_a_release_is_repeated_and_read_again_by_the_analyst(tmp_path: Path, capsys: Any) -> None:
    first, again = (dt.run(CONFIG, table=TABLE, ledger=tmp_path / "ledger", out=tmp_path / name) for name in "ab")
    assert first.sanitized.equals(again.sanitized)
    reach = Dummies(72, **{k: v for k, v in first.sanitized_description["dummies"].items() if k != "people"}).reach
    assert abs(first.sanitized.height - 2 * N - 72 * reach) < 2 * 72 * reach
    capsys.readouterr()
    assert invoke(["estimate", str(tmp_path / "a" / "sanitized.parquet"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["overall"]["value"] == first.evaluation.estimates.overall.value
    assert told["overall"]["interval"] == [list(one) for one in first.evaluation.estimates.overall.interval]


@pytest.mark.exhaust
def test_symbols_of_a_person_travel_apart_in_many_files(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "table.parquet")
    config = {**CONFIG, "data": {**CONFIG["data"], "path": str(tmp_path / "table.parquet")}}
    report = dt.engine.run(config, out=tmp_path / "out", ledger=tmp_path / "ledger", engine="processes", workers=1)
    estimates = report.evaluation.estimates
    for true, (low, high) in zip(
        np.quantile(X, [0.05, 0.25, 0.5, 0.75, 0.95]), estimates.overall.interval, strict=True
    ):
        assert low - 1.5 < true < high + 1.5
    assert isinstance(estimates.curve, dict)
    names = pl.read_parquet(tmp_path / "out" / "sanitized" / "*.parquet")["report"].to_list()
    above = set((Distribution(0.0, 32.0, bins=64, levels=2).names or [])[:8])
    upper = np.array([one in above for one in names])
    same = (upper[1:] != upper[:-1]).mean()
    assert abs(same - 2 * upper.mean() * (1 - upper.mean())) < 6 * 0.5 / math.sqrt(len(names))  # one mixed order


def test_it_is_asked_from_objects() -> None:
    asked = dt.Distribution(0.0, 32.0, bins=64, levels=2, quantiles=(0.5,))
    size = asked.domain["k"]
    dummies = dummies_for_rounds(k=size, epsilon=1.0, delta=1e-6, rounds=2, law="geometric")
    made = dt.Collection.of(
        TABLE,
        private="x",
        person="id",
        question=asked,
        randomizer=OpenAnswers(size),
        dummies=dummies,
        rng=dt.simulation(1),
    )
    overall = dt.rehearse(made, rng=dt.simulation(2)).evaluation.estimates.overall
    assert overall.labels == ["median"] and abs(overall.value[0] - overall.truth[0]) < 1.0
    assert isinstance(made.central, CentralDP) and made.central.epsilon <= 1.0
    with pytest.raises(ParameterError, match="several symbols of a person, here 2, go with dummies alone"):
        dt.Collection.of(TABLE, private="x", question=asked, randomizer=KRR(size, 4.0))
    with pytest.raises(ParameterError, match="several symbols of a person go without local noise"):
        dt.Collection.of(TABLE, private="x", question=asked, randomizer=KRR(size, 4.0), dummies=dummies)


def test_a_batch_is_one_mixed_list() -> None:
    """Neighbours in it are of one level as often as by chance; a right one fails with a chance below 1e-8."""
    asked, people, rng = Distribution(0.0, 32.0, bins=16, levels=2), People(N, pl.DataFrame()), dt.simulation(6)
    for noise in noises(2):
        batch = noise.complete(noise.randomize(asked.answer(X, rng), people, rng), rng)
        upper = batch < asked.tree.nodes[0]
        same = float((upper[1:] == upper[:-1]).mean())
        assert batch.ndim == 1 and abs(same - upper.mean() ** 2 - (1 - upper.mean()) ** 2) < 6.0 / math.sqrt(
            batch.size
        )


def test_groups_have_quantiles_of_their_own(tmp_path: Path) -> None:
    config = {
        **CONFIG, "mode": "rehearsal", "seed": 2,
        "question": {"ask": "distribution", "bins": 16, "quantiles": "0.5, 0.9"},
        "data": {**CONFIG["data"], "public": ["age"]}, "randomize": {"epsilon": 5.0}, "promise": {},
        "shuffle": {"shuffler": "within_groups", "groups": {"labels": "age"}}, "estimate": {"by": ["age"]},
    }  # fmt: skip
    groups = dt.run(config, table=TABLE, ledger=tmp_path).evaluation.estimates.groups
    assert isinstance(groups, list) and [one.group for one in groups] == ["20", "21", "22"]
    for one in groups:
        assert one.truth is not None and all(
            low - 2.0 <= true <= high + 2.0 and high > low
            for true, (low, high) in zip(one.truth, one.interval, strict=True)
        )
    assert groups[0].value != groups[1].value
    widths = {high - low for low, high in groups[0].interval}
    assert all(width / 2.0 == int(width / 2.0) for width in widths)  # ends of bins, as for everybody


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": {"ask": "distribution", "bins": 101, "levels": 2}}, "101 bins are no product of 2 numbers"),
        (
            {"question": {"ask": "distribution", "quantiles": "0.5, 1.5"}},
            "`quantiles` must be different numbers above 0",
        ),
        ({"question": {"ask": "distribution", "quantiles": "half"}}, "`quantiles` must be numbers above 0"),
        ({"promise": {}, "randomize": {"epsilon": 3.0}}, "go with dummies alone"),
        ({"promise": {}, "randomize": {"epsilon": 3.0, "randomizer": "unary"}}, "needs reports that name an answer"),
        ({"data": {"private": "x", "categories": ["a", "b"]}}, "declare `lower` and `upper`"),
        ({"promise": {**CONFIG["promise"], "trust": "users", "delta": 1e-9}}, "with 3 messages a person"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        dt.run({**CONFIG, **changes}, table=TABLE, ledger=tmp_path)
    assert "\n" not in str(refused.value)


def test_a_tree_behind_sparse_dummies_is_refused_as_sums_over_its_levels_have_no_law(tmp_path: Path) -> None:
    config = {**CONFIG, "promise": {**CONFIG["promise"], "dummies": "sparse"}}
    with pytest.raises(UnsupportedError, match=r"ask with one list \(of a distribution `levels` = 1\)"):
        dt.run(config, table=TABLE, ledger=tmp_path)
    assert not any(tmp_path.rglob("*.parquet"))
    noise = SparseNoise(SparseDummies(6, 1.0), OpenAnswers(6), 2)
    for ask in (noise.deviation, partial(noise.reach, held=np.array([0]), tail=0.1)):
        with pytest.raises(UnsupportedError, match="sums over several lists"):
            ask(np.ones((1, 2)), np.ones((1, 2)), people=People(9))


def weighted(held: np.ndarray, worth: np.ndarray, shares: tuple[float, ...]) -> np.ndarray:
    """The bins of quantiles where each person counts for so much."""
    below = np.cumsum(np.bincount(held, worth, 16)) / worth.sum()
    return np.array([np.flatnonzero(below >= share - 1e-12)[0] for share in shares])


@pytest.mark.exhaust
@pytest.mark.parametrize("related", [False, True])
def test_intervals_cover_where_epsilons_differ_whoever_answers_with_what(related: bool) -> None:
    """Quantiles of people as truthful as they are; a right one fails with a chance below 1e-8 in each of 10 tails."""
    careful = np.median(X) > X if related else np.random.default_rng(8).random(N) < 0.5
    classes = pl.DataFrame({"class": np.where(careful, "careful", "open")})
    asked, rng, people = Distribution(0.0, 32.0, bins=16), dt.simulation(6), People(N, classes)
    noise = EpsilonClasses(16, "class", {"careful": 1.0}, 3.0)
    held, width = asked.answer(X, rng), 2.0
    worth = np.where(careful, *(KRR(16, epsilon).channel().contrast for epsilon in (1.0, 3.0)))
    true, covered, wide, repeats = weighted(held, worth, asked.quantiles), np.zeros(5), np.zeros(5), 300
    for _ in range(repeats):
        low, high = asked.learned(noise, noise.tally(noise.randomize(held, people, rng)), people).interval(0.95)
        covered += (low <= width * true) & (width * (true + 1) <= high)
        wide += (high - low) / width / repeats
    assert (covered >= binom.ppf(1e-8, repeats, 0.95)).all()
    assert (wide < 8.0).all()  # of 16 bins
    if related:
        assert (true != weighted(held, np.ones(N), asked.quantiles)).any()


# Planned by a wanted error.


@pytest.mark.exhaust
def test_a_plan_takes_the_tree_that_its_error_is_worth() -> None:
    data = {"lower": 0.0, "upper": 100.0}
    ask: Any = lambda bins, **more: plan_question(  # noqa: E731
        "distribution", settings={"bins": bins}, data=data, trust="shuffler", delta=1e-6, **more
    )
    few, many = ask(32, n=100_000, epsilon=1.0), ask(1024, n=100_000, epsilon=1.0)
    assert (few.question.levels, many.question.levels) == (1, 2)
    assert many.standard_error * 100_000 == pytest.approx(22.2, abs=0.05)
    rms = (
        many.standard_error
        * 100_000
        * math.sqrt(many.question.tree.variance().mean() / many.question.tree.variance().max())
    )
    assert rms <= 18.2 and many.noise.dummies.k * many.noise.dummies.reach <= 60_192
    assert 0.98 < many.central.epsilon <= 1.0
    needed = ask(64, error=1e-3, epsilon=1.0)
    assert needed.error95 <= 1e-3 < ask(64, n=int(0.98 * needed.people.n), epsilon=1.0).error95
    local = plan_question("distribution", settings={"bins": 64}, data=data, n=100_000, epsilon=1.0)
    assert local.question.levels == 1 and local.central.epsilon <= 1.0


@pytest.mark.exhaust
def test_dummies_of_people_are_more_for_more_symbols() -> None:
    one, two = (user_dummies_for(k=72, epsilon=1.0, delta=1e-6, honest=50_000, symbols=symbols) for symbols in (1, 2))
    assert 2.0 * one.rate < two.rate < 5.0 * one.rate


ROUNDS: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "size", "lower": 0.0, "upper": 2.0**30},
    "question": {"ask": "distribution", "bins": 16, "quantiles": "0.25, 0.5"},
    "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6, "rounds": 2, "dummies": "gaussian"},
}


def sizes(n: int, seed: int) -> np.ndarray:
    return np.minimum(np.floor(np.exp(np.random.default_rng(seed).normal(12.0, 2.0, n))), 2.0**30 - 1.0)


def test_the_next_round_cuts_intervals_and_keeps_the_range() -> None:
    asked = Distribution(0.0, 1024.0, bins=4, quantiles=(0.25, 0.5, 0.75))
    found = asked.after(np.array([0.0, 512.0, 640.0]), np.array([256.0, 768.0, 1024.0]), 9, None)
    assert not isinstance(found, Missing)
    then = Distribution(0.0, 1024.0, **found)
    assert then.quantiles == asked.quantiles and then.edges[0] == 0.0 and then.edges[-1] == 1024.0
    assert set(np.arange(0.0, 257.0, 32.0)) | set(np.arange(512.0, 1025.0, 32.0)) <= set(then.edges)
    assert set(then.edges[(then.edges > 256) & (then.edges < 512)]) == {320.0, 384.0}
    assert then.answer(np.array([0.0, 17.0, 300.0, 1024.0]), dt.simulation(1)).tolist() == [0, 0, 8, then.bins - 1]
    near = Distribution(0.0, 1024.0, bins=16, quantiles=(0.5,)).after(np.array([512.0]), np.array([576.0]), 9, None)
    assert not isinstance(near, Missing)
    ends = Distribution(0.0, 1024.0, **near).edges
    assert ends[[0, 1, 2, 3, 4, -4, -3, -2, -1]].tolist() == [0, 256, 448, 496, 512, 592, 640, 832, 1024]
    for wrong in ("5", "1, 0", "0, 512, 512, 1024", "0, 512, 1000", "a, b"):
        with pytest.raises(ParameterError, match="`ends`"):
            Distribution(0.0, 1024.0, ends=wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="`levels`"):
        Distribution(0.0, 1024.0, levels=2, ends=(0.0, 1.0, 2.0, 3.0, 1024.0))


@pytest.mark.exhaust
def test_rounds_of_one_promise_come_nearer_to_quantiles_of_a_huge_range(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = sizes(4000, 1)
    pl.DataFrame({"id": range(4000), "size": values}).write_parquet(tmp_path / "table.parquet")
    lines = ["schema_version = 1 # first", 'mode = "release"', "[data]", 'path = "table.parquet"', 'person = "id"']
    lines += ['private = "size"', "lower = 0.0", "upper = 1073741824.0", "[question]", 'ask = "distribution"']
    lines += ["bins = 16", 'quantiles = "0.25, 0.5"', "[promise]", 'trust = "shuffler"', "epsilon = 1.0"]
    lines += ["delta = 1e-6", "rounds = 2", 'dummies = "gaussian"']
    (tmp_path / "one.toml").write_text("\n".join(lines))
    first, then = (str(tmp_path / name) for name in ("one.toml", "two.toml"))
    common = ["--ledger", str(tmp_path / "ledger"), "--new-release"]
    assert invoke(["run", first, "--out", str(tmp_path / "one"), *common]) == 0
    assert invoke(["refine", first, str(tmp_path / "one"), "--out", then]) == 0
    assert "dovetail run" in capsys.readouterr().out and "# first" in Path(then).read_text()
    assert invoke(["run", then, "--out", str(tmp_path / "two"), *common]) == 0
    one, two = (json.loads((tmp_path / name / "report.json").read_text()) for name in ("one", "two"))
    width = [np.ptp(told["estimates"]["overall"]["interval"], axis=1) for told in (one, two)]
    assert (width[1] < 0.2 * width[0]).all()
    assert two["central"]["all"] <= 1.0 and two["release"]["releases"] == 2
    capsys.readouterr()
    assert invoke(["refine", first, str(tmp_path / "one"), "--out", then]) == 2
    assert invoke(["refine", first, str(tmp_path / "one"), "--out", str(tmp_path / "one" / "next.toml")]) == 2
    assert "must lie beside" in capsys.readouterr().err


def test_the_next_round_keeps_the_comments_of_the_last_one(tmp_path: Path) -> None:
    first, report, then = (tmp_path / name for name in ("one.toml", "report.json", "two.toml"))
    first.write_text(
        'schema_version = 1\nmode = "rehearsal"\n[data]\npath = "a.csv"\nprivate = "bytes"\nlower = 0.0\n'
        'upper = 1024.0\n\n# what is asked\n[question]\nask = "distribution" # bins first\nbins = 4\n'
        'quantiles = "0.5" # the median\n\n# what is promised\n[promise]\ntrust = "shuffler"\nepsilon = 1.0\n'
        'delta = 1e-6\nrounds = 2\ndummies = "gaussian"\n'
    )
    overall = {"labels": ["median"], "interval": [[256.0, 512.0]], "n": 900}
    about = {"kind": "distribution", "private": "bytes", "lower": 0.0, "upper": 1024.0}
    report.write_text(json.dumps({"collection": about, "estimates": {"overall": overall}}))
    assert invoke(["refine", str(first), str(report), "--out", str(then)]) == 0
    left, right = (place.read_text().splitlines() for place in (first, then))
    assert [line for line in right if not line.startswith(("ends = ", "earlier = "))] == [
        line for line in left if line != "bins = 4"
    ]
    assert right[right.index("# what is promised") + 1] == "[promise]"


ABOUT = {"kind": "distribution", **{key: ROUNDS["data"][key] for key in ("private", "lower", "upper")}}


def test_one_round_and_other_questions_have_no_next_one() -> None:
    overall = {"labels": ["lower quartile", "median"], "interval": [[0.0, 1.0], [0.0, 1.0]], "n": 900}
    told = {"mode": "release", "collection": ABOUT, "estimates": {"overall": overall}}
    data = {**ROUNDS["data"], "path": "a.csv"}
    with pytest.raises(ConfigError, match=r"promise\.rounds"):
        dt.refine({**ROUNDS, "data": data, "promise": {**ROUNDS["promise"], "rounds": 1}}, told)
    rehearsed = {**ROUNDS, "data": data, "mode": "rehearsal", "seed": 4}
    assert dt.refine(rehearsed, {**told, "mode": "rehearsal"})["seed"] == 5
    with pytest.raises(DataError, match="another one is its labels"):
        dt.refine({**ROUNDS, "data": data, "question": {"ask": "distribution", "quantiles": "0.3"}}, told)
    with pytest.raises(DataError, match="intervals"):
        dt.refine({**ROUNDS, "data": data}, {})
    for key, other in (("private", "age"), ("upper", 9.0), ("kind", "numeric")):
        with pytest.raises(DataError, match=f"another one is its {key}"):
            dt.refine({**ROUNDS, "data": data}, {**told, "collection": {**ABOUT, key: other}})
    number = {**ROUNDS, "data": data, "question": {"ask": "number"}}
    mean: dict[str, Any] = {"mode": "release", "collection": {**ABOUT, "kind": "numeric"}}
    mean["estimates"] = {"overall": {"labels": ["mean"], "interval": [[0.0, 1.0]], "n": 900}}
    with pytest.raises(UnsupportedError, match="is asked once"):
        dt.refine(number, mean)


def test_a_tree_has_no_next_round_of_its_promise() -> None:
    overall = {"labels": ["median"], "interval": [[0.0, 1.0]], "n": 900}
    told = {"mode": "release", "collection": ABOUT, "estimates": {"overall": overall}}
    asked = {"ask": "distribution", "bins": 36, "quantiles": "0.5"}
    config = {**ROUNDS, "data": {**ROUNDS["data"], "path": "a.csv"}}
    assert dt.refine({**config, "question": asked}, told)["question"]["ends"]
    with pytest.raises(UnsupportedError, match=r"1 symbol of a person and this one 2.*levels` = 1"):
        dt.refine({**config, "question": {**asked, "levels": 2}}, told)


def test_a_next_round_takes_intervals_of_a_release() -> None:
    config = {**ROUNDS, "data": {**ROUNDS["data"], "path": "a.csv"}}
    config["question"] = {"ask": "distribution", "bins": 36, "quantiles": "0.5"}

    def told(mode: str, low: float, high: float) -> dict[str, Any]:
        overall = {"labels": ["median"], "interval": [[low, high]], "n": 900}
        return {"mode": mode, "collection": ABOUT, "estimates": {"overall": overall}}

    assert dt.refine(config, told("release", 1.0, 1.0))
    with pytest.raises(DataError, match="of no rehearsal"):
        dt.refine(config, told("rehearsal", 0.0, 1.0))
    for low, high in ((2.0, 1.0), (0.0, math.nan), (0.0, math.inf)):
        with pytest.raises(DataError, match="two finite numbers"):
            dt.refine(config, told("release", low, high))


def test_no_round_follows_the_last_one_that_the_promise_is_for() -> None:
    overall = {"labels": ["median"], "interval": [[0.0, 1.0]], "n": 900}
    told = {"mode": "release", "collection": ABOUT, "estimates": {"overall": overall}}
    config = {**ROUNDS, "data": {**ROUNDS["data"], "path": "a.csv"}}
    config["question"] = {"ask": "distribution", "bins": 36, "quantiles": "0.5"}
    rounds = config["promise"]["rounds"]
    assert dt.refine(config, {**told, "release": {"releases": rounds - 1}})
    for many in (rounds, rounds + 1):
        with pytest.raises(UnsupportedError, match=f"{many} releases, and `promise.rounds` = {rounds} keep"):
            dt.refine(config, {**told, "release": {"releases": many}})


def test_rounds_are_joined_by_least_squares() -> None:
    """Against dense least squares, and against a tree, whose levels are rounds of bins that were fixed beforehand."""
    rng = np.random.default_rng(1)
    rounds = []
    for bins in (4, 7, 12):
        edges = np.concatenate([[0.0], np.sort(rng.choice(np.arange(1.0, 20.0), bins - 1, replace=False)), [20.0]])
        rounds.append((rng.uniform(0.0, 1.0, bins - 1), edges))
    function, edges = of_rounds(rounds)
    inner, rows, right = edges[1:-1], [], []
    for told, ends in rounds:
        below = (inner[:, None] == ends[1:-1]).astype(float).T  # each inner end is one unknown
        rows.append(np.diff(below, axis=0, prepend=0.0, append=0.0))
        right.append(np.diff(told, prepend=0.0, append=1.0) - np.append(np.zeros(len(told)), 1.0))
    dense = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]
    assert np.abs(function - dense).max() < 1e-12
    tree, counts = Tree((3, 4)), rng.normal(10.0, 5.0, 15)
    levels = []
    for part in np.split(counts, tree.starts[1:]):
        part = part + (120.0 - part.sum()) / part.size  # rounds are told of people who add up
        levels.append((np.cumsum(part)[:-1] / 120.0, np.linspace(0.0, 1.0, part.size + 1)))
    fitted = np.cumsum(tree.fitted(counts, 120))[:-1] / 120.0
    assert np.abs(of_rounds(levels)[0] - fitted).max() < 1e-12


def test_earlier_rounds_of_the_same_people_are_used_for_estimates_and_for_no_interval() -> None:
    values, rng, people = sizes(2_000, 3), dt.simulation(3), People(2_000, pl.DataFrame())
    asked = Distribution(0.0, 2.0**30, bins=16, quantiles=(0.5,))
    law = dummies_for_rounds(k=2, epsilon=1.0, delta=1e-6, rounds=2, law="gaussian").noise
    assert isinstance(law, TruncatedGaussian)

    def round_of(one: Distribution) -> tuple[GaussianNoise, Any]:
        noise = GaussianNoise(GaussianDummies(one.bins, law), OpenAnswers(one.bins))
        return noise, noise.tally(noise.complete(noise.randomize(one.answer(values, rng), people, rng), rng))

    first = round_of(asked)
    low, high = asked.learned(*first, people).interval(0.95)
    found = asked.after(low, high, people.n, asked.curve(*first, people))
    assert not isinstance(found, Missing)
    then = Distribution(0.0, 2.0**30, **found)
    alone, others = (
        Distribution(0.0, 2.0**30, **{**found, "earlier": one}) for one in ((), ((1_999, *then.earlier[0][1:]),))
    )
    ((told, pairs),) = then.earlier
    assert told == 2_000 and [end for end, _ in pairs] == asked.edges[1:-1].tolist()
    assert np.abs(np.array(pairs)[:, 1] - asked.function(*first, people)).max() < 1e-9
    second = round_of(then)
    both, last, other = (one.learned(*second, people) for one in (then, alone, others))
    joined = of_rounds([(then.function(*second, people), then.edges), (np.array(pairs)[:, 1], asked.edges)])
    assert both.value == quantiles(*joined, np.array([0.5])) and both.value != last.value == other.value
    for now, before in zip(both.interval(0.95), last.interval(0.95), strict=True):
        assert now in (before, both.value)  # the same, but for what is estimated
    (used,), (left,) = then.notes({}, n=2_000, mode="release"), others.notes({}, n=2_000, mode="release")
    assert (
        "1 earlier of the same 2,000 people" in used
        and "left out" in left
        and not alone.notes({}, n=9, mode="release")
    )
    for wrong in ("x", "9: 1", "9: 2 .5, 1 .5", "9: 0 .5", "9: 1 nan", "9: 1 -1e308"):
        with pytest.raises(ParameterError, match="`earlier`"):
            Distribution(0.0, 4.0, bins=2, earlier=wrong)  # type: ignore[arg-type]


@pytest.mark.exhaust
def test_eight_rounds_cover_quantiles_of_a_range_of_2_to_the_30() -> None:
    """60 intervals of 95 %, those of a run counted as one: a right one fails with a chance below 1e-6."""
    missed, rank = 0, []
    law = dummies_for_rounds(k=2, epsilon=1.0, delta=1e-6, rounds=8, law="gaussian").noise
    assert isinstance(law, TruncatedGaussian)
    for seed in range(12):
        values, rng, people = sizes(20_000, seed), dt.simulation(seed), People(20_000, pl.DataFrame())
        asked = Distribution(0.0, 2.0**30, bins=16)
        for _ in range(8):
            noise = GaussianNoise(GaussianDummies(asked.bins, law), OpenAnswers(asked.bins))
            batch = noise.complete(noise.randomize(asked.answer(values, rng), people, rng), rng)
            tally = noise.tally(batch)
            learned = asked.learned(noise, tally, people)
            low, high = learned.interval(0.95)
            last, then = asked, asked.after(low, high, people.n, asked.curve(noise, tally, people))
            assert not isinstance(then, Missing)
            asked = Distribution(0.0, 2.0**30, **then)
        truth = np.array(last.truth(values))
        missed += bool(((truth < low) | (truth > high)).any())
        rank += np.abs(np.searchsorted(np.sort(values), learned.value) - 20_000 * np.array(last.quantiles)).tolist()
    assert missed <= binom.ppf(1.0 - 1e-6, 12, 0.25) and np.mean(rank) < 33.0
