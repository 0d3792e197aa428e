"""All two-way tables: one promise, cells with intervals, tests of independence, and a synthetic table."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import dovetail as dt
from dovetail.account.dummies import dummies_for_rounds, sparse_for_rounds
from dovetail.account.gaussian_dummies import Message, message_epsilon, message_for
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DataError, UnsupportedError
from dovetail.core.guarantee import CentralDP
from dovetail.core.noise import Noise, People
from dovetail.estimate.tables import Pairs, consistent, independence, mutual_information, synthetic, variation
from dovetail.job.config import load_config
from dovetail.job.question_plan import plan_question
from dovetail.noise.gaussian import GaussianNoise
from dovetail.noise.shuffler import ShufflerNoise
from dovetail.noise.sparse import SparseNoise
from dovetail.noise.users import UserNoise
from dovetail.question.tables import Tables
from dovetail.randomize.sampling.open_reports import OpenAnswers
from dovetail.report.html import render_html
from dovetail.shuffle.sampling.dummies import SeveralDummies, UserDummies
from dovetail.shuffle.uniform import Uniform

N = 4000
DRAWN = np.random.default_rng(11)
A = DRAWN.integers(0, 3, N)
B = np.where(DRAWN.random(N) < 0.7, A, DRAWN.integers(0, 3, N))
C = DRAWN.integers(0, 2, N)
CODES = np.column_stack([A, B, C])
PAIRS = Pairs((3, 3, 2))
NAMES = [["x", "y", "z"], ["p", "q", "r"], ["m", "f"]]
TABLE = pl.DataFrame(
    {"id": range(N), **{name: [NAMES[i][one] for one in CODES[:, i]] for i, name in enumerate(("a", "b", "c"))}}
)
OTHERS = "b: p | q | r; c: m | f"
ASKED = Tables(("x", "y", "z"), OTHERS)
CONFIG: dict[str, Any] = {
    "schema_version": 1,
    "mode": "release",
    "data": {"person": "id", "private": "a", "categories": ["x", "y", "z"]},
    "question": {"ask": "tables", "others": OTHERS},
    "promise": {"trust": "shuffler", "epsilon": 1.0, "delta": 1e-6},
}
WEIGHTED = message_for(weights=PAIRS.precisions, epsilon=1.0, delta=1e-6)
NOISES: list[Noise] = [
    ShufflerNoise(dummies_for_rounds(k=21, epsilon=1.0, delta=1e-6, rounds=3, law="geometric"), OpenAnswers(21), 3),
    UserNoise(UserDummies(21, 0.5), OpenAnswers(21), 3),
    GaussianNoise(SeveralDummies(WEIGHTED.laws, PAIRS.cells), OpenAnswers(21), 3),
]


@pytest.mark.parametrize("noise", NOISES, ids=lambda one: one.name)
def test_intervals_of_cells_are_no_wider_than_the_noise_of_their_own_table(noise: Noise) -> None:
    """A table of dummies of people took those of the other tables for none at all, and lost its law."""
    people = People(N)
    found = ASKED.learned(noise, noise.expected(np.full(21, 3.0 / 21.0), people), people)
    low, high = found.interval()
    assert (found.value - low < 2.2 * found.standard_error + 1.0 / N).all()
    assert (high - found.value < 2.2 * found.standard_error + 1.0 / N).all()


def test_everybody_is_in_one_cell_of_each_table() -> None:
    tables = PAIRS.counted(CODES)
    assert [one.shape for one in tables.values()] == [(3, 3), (3, 2), (3, 2)]
    for (i, j), table in tables.items():
        for x, y in np.ndindex(*table.shape):
            assert table[x, y] == ((CODES[:, i] == x) & (CODES[:, j] == y)).sum()
    assert (np.diff(PAIRS.symbols(CODES), axis=1) > 0).all() and PAIRS.symbols(CODES).max() < PAIRS.size


SPARSE = SparseNoise(sparse_for_rounds(k=21, epsilon=3.0, delta=1e-6, rounds=3), OpenAnswers(21), 3)


def sparse_coverage(kept_by: SparseNoise, *, repeats: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How often intervals cover, of these people and their population, and how far off values are, by these coins."""
    rng, people = dt.simulation(7), People(N)
    truth, law, values = np.array(ASKED.truth(CODES)), np.random.default_rng(8), []
    covered, drawn = np.zeros(21), np.zeros(21)
    for _ in range(repeats):
        some = CODES[law.integers(0, N, N)]  # these people are the population
        for codes, found in ((CODES, covered), (some, drawn)):
            batch = kept_by.complete(kept_by.randomize(ASKED.answer(codes, rng), people, rng), rng)
            one = ASKED.learned(SPARSE, SPARSE.tally(batch), people)
            low, high = one.interval(0.95) if codes is CODES else one.population_interval(0.95)
            found += (low <= truth + 1e-12) & (truth - 1e-12 <= high)
            if codes is CODES:
                values.append((one.value - truth) / one.standard_error)
    return covered, drawn, np.array(values)


@pytest.mark.exhaust
def test_cells_behind_sparse_dummies_have_intervals_of_their_own_law() -> None:
    """Of 21 cells each: binomial tails of 1e-9, six standard errors. Coins that keep a tenth fewer are seen."""
    repeats = 150
    least = binom.ppf(1e-9, repeats, 0.95)
    covered, drawn, values = sparse_coverage(SPARSE, repeats=repeats)
    assert (covered >= least).all() and (drawn >= least).all()
    assert (np.abs(values.mean(axis=0)) < 6.0 / np.sqrt(repeats) + 0.05).all()  # rare counts are skew
    assert (np.abs(values.std(axis=0) - 1.0) < 6.0 * np.sqrt(2.0 / repeats)).all()
    fewer = SparseNoise(sparse_for_rounds(k=21, epsilon=2.75, delta=1e-6, rounds=3), OpenAnswers(21), 3)
    assert (sparse_coverage(fewer, repeats=40)[0] < binom.ppf(1e-9, 40, 0.95)).any()


@pytest.mark.exhaust
def test_a_test_of_independence_behind_sparse_dummies_has_its_size() -> None:
    """At .05, of 300 tables of columns that do not go together: a right one fails with a chance of 1e-4."""
    asked = Tables(("x", "y", "z"), "c: m | f")
    noise = SparseNoise(sparse_for_rounds(k=6, epsilon=2.0, delta=1e-6, rounds=1), OpenAnswers(6), 1)
    rng, people, law = dt.simulation(9), People(2000), np.random.default_rng(10)
    found = []
    for dependent in [False] * 300 + [True] * 20:
        one = law.choice(3, 2000, p=[0.5, 0.3, 0.2])
        two = np.where(law.random(2000) < 0.4 * dependent, one % 2, law.choice(2, 2000, p=[0.6, 0.4]))
        batch = noise.complete(noise.randomize(asked.answer(np.column_stack([one, two]), rng), people, rng), rng)
        found.append(asked.curve(noise, noise.tally(batch), people)["p"][0] <= 0.05)
    assert binom.ppf(5e-5, 300, 0.05) <= sum(found[:300]) <= binom.ppf(1.0 - 5e-5, 300, 0.06)
    assert all(found[300:])


def test_sparse_dummies_of_tables_promise_what_their_account_says(tmp_path: Path) -> None:
    """Of three tables no delta is spent; of ten, one that pays: 14 % more epsilon for each."""
    promise = {**CONFIG["promise"], "dummies": "sparse", "epsilon": 3.0}
    few = dt.run({**CONFIG, "promise": promise}, table=TABLE, ledger=tmp_path, out=tmp_path / "out").document()
    assert few["central"]["delta"] == 0.0 and 2.99 < few["central"]["epsilon"] <= 3.0
    assert any("keeps each symbol with probability" in one for one in few["assumptions"])
    asked = Tables(("x", "y"), "b: p | q; c: p | q; d: p | q; e: p | q")
    many = sparse_for_rounds(k=40, epsilon=1.0, delta=1e-6, rounds=asked.symbols)
    told = SparseNoise(many, OpenAnswers(40), 10).central(Uniform(N), People(N), delta=1e-6)
    assert isinstance(told, CentralDP) and told.delta == 1e-6 and 0.999 < told.epsilon <= 1.0
    assert many.epsilon > 0.113
    with pytest.raises(
        UnsupportedError, match=r"noise drowns all two-way tables of 60 people: .* takes [\d,]+ people"
    ):
        dt.run({**CONFIG, "promise": promise | {"epsilon": 0.5}}, table=TABLE.head(60), ledger=tmp_path / "few")


def test_typical_cells_say_how_many_people_it_takes() -> None:
    pairs = Pairs((2, 2))
    alike, apart = np.full(4, 0.5), np.array([0.1, 0.1, 0.1, np.sqrt(1.0 - 0.03)])
    assert pairs.noise(alike) == {(0, 1): 2.0} and pairs.needed(alike, 100) == {(0, 1): 200}
    assert pairs.noise(apart)[0, 1] == pytest.approx(2.0) and pairs.needed(apart, 100) == {(0, 1): 400}


@pytest.mark.exhaust
@pytest.mark.parametrize("noise", NOISES, ids=lambda one: one.name)
def test_cells_are_right_on_average_and_intervals_cover(noise: Noise) -> None:
    """A right implementation fails with a chance below 1e-6: six standard errors in 21 cells, tails of 1e-8."""
    rng, people, repeats = dt.simulation(1), People(N, pl.DataFrame()), 150
    truth, covered, values = np.array(ASKED.truth(CODES)), np.zeros(21), []
    for _ in range(repeats):
        batch = noise.complete(noise.randomize(ASKED.answer(CODES, rng), people, rng), rng)
        one = ASKED.learned(noise, noise.tally(batch), people)
        values.append(one.value)
        low, high = one.interval(0.95)
        covered += (low <= truth) & (truth <= high)
        sums = np.add.reduceat(one.value, PAIRS.starts)
        np.testing.assert_allclose(sums, 1.0)
    said = ASKED.learned(noise, noise.tally(batch), people).standard_error
    assert (np.abs(np.mean(values, axis=0) - truth) < 6.0 * said / np.sqrt(repeats)).all()
    spread = np.std(values, axis=0) / said
    assert (np.abs(spread - 1.0) < 6.0 * np.sqrt(2.0 / repeats)).all()
    assert (covered >= binom.ppf(1e-8, repeats, 0.95)).all()


def test_consistent_tables_have_one_margin_for_each_column() -> None:
    rng, true = np.random.default_rng(2), PAIRS.counted(CODES)
    noisy = {pair: table + rng.normal(0.0, 150.0, table.shape) for pair, table in true.items()}
    found = consistent(noisy, PAIRS.sizes, N)
    for table in found.values():
        assert table.min() >= 0.0 and table.sum() == pytest.approx(N, rel=1e-6)
    for column in range(3):
        margins = [table.sum(axis=1 if column == i else 0) for (i, j), table in found.items() if column in (i, j)]
        np.testing.assert_allclose(margins[0], margins[1], atol=1e-6 * N)
    drawn = np.random.default_rng(1)
    many = Pairs((7, 9, 5))
    few = np.column_stack(
        [drawn.choice(7, 2000, p=[0.5, 0.3, 0.1, 0.06, 0.02, 0.01, 0.01]), *drawn.integers(0, 5, (2, 2000))]
    )
    loud = {pair: table + drawn.normal(0.0, 60.0, table.shape) for pair, table in many.counted(few).items()}
    clipped = consistent(loud, many.sizes, 2000)
    np.testing.assert_allclose(clipped[0, 1].sum(axis=1), clipped[0, 2].sum(axis=1), atol=1e-6 * 2000)
    nearer, raw = variation(found, true), variation({p: np.maximum(t, 0.0) for p, t in noisy.items()}, true)
    assert sum(nearer.values()) < 0.9 * sum(raw.values())
    for pair, table in consistent(true, PAIRS.sizes, N).items():
        np.testing.assert_allclose(table, true[pair], atol=1e-3)


def test_a_synthetic_table_of_exact_tables_has_them() -> None:
    true = PAIRS.counted(CODES)
    codes = synthetic(true, PAIRS.sizes, N, np.random.default_rng(3))
    assert codes.shape == (N, 3) and (codes >= 0).all() and (codes < PAIRS.sizes).all()
    assert max(variation(PAIRS.counted(codes), true).values()) < 0.006
    fewer = synthetic(true, PAIRS.sizes, 500, np.random.default_rng(3))
    assert len(fewer) == 500 and max(variation(PAIRS.counted(fewer), true).values()) < 0.05


def test_mutual_information_is_that_of_the_table() -> None:
    table = np.array([[3.0, 1.0], [0.0, 4.0]])
    law = table / 8.0
    exact = sum(
        law[i, j] * np.log(law[i, j] / law[i].sum() / law[:, j].sum()) for i, j in np.ndindex(2, 2) if law[i, j]
    )
    assert mutual_information(table) == pytest.approx(exact)


def p_values(n: int, sd: float, repeats: int, *, dependent: float) -> np.ndarray:
    rng, pairs, found = np.random.default_rng(int(1000 * sd) + n), Pairs((4, 3)), []
    for _ in range(repeats):
        one = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
        two = np.where(rng.random(n) < dependent, one % 3, rng.choice(3, n, p=[0.5, 0.3, 0.2]))
        tables = pairs.counted(np.column_stack([one, two]))
        noisy = {pair: table + rng.laplace(0.0, sd / 2**0.5, table.shape) for pair, table in tables.items()}
        draw = lambda held: {(0, 1): rng.laplace(0.0, sd / 2**0.5, (4, 3))}  # noqa: E731
        found.append(independence(noisy, n, {(0, 1): sd**2}, draw, rng)[0, 1])
    return np.array(found)


@pytest.mark.exhaust
def test_a_test_of_independence_has_its_size() -> None:
    """At .05, of 400 tables: a right one fails with a chance of 1e-4; the size is asymptotic."""
    rejected = (p_values(2000, 10.0, 400, dependent=0.0) <= 0.05).sum()
    assert binom.ppf(5e-5, 400, 0.05) <= rejected <= binom.ppf(1.0 - 5e-5, 400, 0.06)


@pytest.mark.exhaust
def test_a_test_of_independence_finds_what_goes_together_and_no_more() -> None:
    """Of 25 tables each; p values of independent ones are uniform, so that 12 below .1 have a chance of 1e-6."""
    assert (p_values(2000, 10.0, 25, dependent=0.3) <= 0.05).all()
    assert (p_values(2000, 10.0, 25, dependent=0.0) <= 0.1).sum() < 12


def test_a_table_that_noise_leaves_one_row_of_is_not_tested() -> None:
    rng = np.random.default_rng(4)
    table = {(0, 1): rng.normal(5.0, 50.0, (3, 3))}
    assert independence(table, 45, {(0, 1): 2500.0}, lambda held: table, rng) == {}


def test_a_release_has_tables_tests_and_a_synthetic_table(tmp_path: Path) -> None:
    first, again = (dt.run(CONFIG, table=TABLE, ledger=tmp_path) for _ in range(2))
    assert first.evaluation.estimates == again.evaluation.estimates
    curve = first.evaluation.estimates.curve
    assert isinstance(curve, dict) and curve["p"][0] == 0.005 and min(curve["p"][1:]) > 0.001
    assert curve["information"][0] > 10 * max(curve["information"][1:])
    page = render_html(first.document())
    assert "Noise is larger" not in page and "chosen from what earlier rounds released" in page
    assert page.count('class="heat"') == 3 + 9 and "How much two columns tell of one another" in page
    assert "People by a and b, which tell most of one another" in page  # 3 by 3 answers
    assert "Which columns go together" in page and "a and b" in page and "no standard errors" in page
    made = dt.synthesize(first, seed=1)
    assert made.columns == ["a", "b", "c"] and made.height == N and made.equals(dt.synthesize(again, seed=1))
    codes = np.column_stack(
        [made[name].replace_strict(NAMES[i], range(3 if i < 2 else 2)) for i, name in enumerate("abc")]
    )
    assert max(variation(PAIRS.counted(codes), PAIRS.counted(CODES)).values()) < 0.03
    with pytest.raises(UnsupportedError, match="ask for `tables`"):
        dt.synthesize(dt.run({**CONFIG, "question": {"ask": "shares"}}, table=TABLE, ledger=tmp_path / "other"))


@pytest.mark.exhaust
def test_larger_tables_have_less_noise_in_a_cell_and_all_keep_the_promise_of_their_message(tmp_path: Path) -> None:
    """The dummies are those of the weights, 4, 3 and 3, and what is promised is the account of exactly these."""
    noise = NOISES[2]
    promised = noise.central(Uniform(N), People(N, pl.DataFrame()), delta=1e-6)
    assert isinstance(promised, CentralDP) and WEIGHTED.weights == (4, 3, 3)
    assert 0.99 < message_epsilon(WEIGHTED, 1e-6) <= promised.epsilon <= 1.0
    assert Message.of(WEIGHTED.laws) == WEIGHTED
    error = ASKED.learned(
        noise, noise.expected(np.full(21, 1.0 / 9.0), People(N, pl.DataFrame())), People(N, pl.DataFrame())
    )
    sd = (
        np.array([float(law.variance) for law in WEIGHTED.laws]) ** 0.5 * np.sqrt(1.0 - 1.0 / np.array([9, 6, 6])) / N
    )
    np.testing.assert_allclose(error.standard_error, np.repeat(sd, [9, 6, 6]), rtol=1e-12)
    rounds = {**CONFIG["promise"], "dummies": "gaussian", "rounds": 2}
    report = dt.run({**CONFIG, "promise": rounds}, table=TABLE, ledger=tmp_path)
    together = message_for(weights=(4, 3, 3), epsilon=1.0, delta=1e-6, rounds=2)
    assert report.evaluation.central.epsilon == pytest.approx(message_epsilon(together, 1e-6, rounds=2), rel=1e-6)
    shown = float(together.laws[0].variance) ** 0.5 * (8.0 / 9.0) ** 0.5 / N
    assert report.evaluation.estimates.overall.standard_error[0] == pytest.approx(shown)


@pytest.mark.exhaust
@pytest.mark.parametrize("dummies", ["geometric", "gaussian", "sparse"])
def test_the_analyst_reads_a_released_table_again(
    dummies: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {**CONFIG, "promise": {**CONFIG["promise"], "dummies": dummies}}
    report = dt.run(config, table=TABLE, ledger=tmp_path / "ledger", out=tmp_path / "out")
    capsys.readouterr()
    assert invoke(["estimate", str(tmp_path / "out" / "sanitized.parquet"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["overall"]["value"] == report.evaluation.estimates.overall.value
    assert told["curve"]["p"] == report.evaluation.estimates.curve["p"]  # type: ignore[index]


@pytest.mark.exhaust
def test_the_command_line_writes_a_synthetic_table_of_a_release_and_says_how_good_each_pair_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, made = tmp_path / "out", tmp_path / "made.parquet"
    report = dt.run(CONFIG, table=TABLE, ledger=tmp_path / "ledger", out=release)
    capsys.readouterr()
    assert invoke(["synthesize", str(release), "--out", str(made), "--seed", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    table = pl.read_parquet(made)
    assert table.equals(dt.synthesize(report, seed=1)) and told["people"] == table.height == N
    assert not {"standard_error", "interval"} & set(told) | {key for one in told["pairs"] for key in one} - {
        "columns", "noise", "fit", "people", "good"
    }  # fmt: skip
    cells = PAIRS.split(np.array(report.evaluation.estimates.overall.value))
    codes = np.column_stack(
        [table[name].replace_strict(NAMES[i], range(3 if i < 2 else 2)) for i, name in enumerate("abc")]
    )
    error = PAIRS.split(np.array(report.evaluation.estimates.overall.standard_error))
    for one, (pair, off) in zip(told["pairs"], variation(PAIRS.counted(codes), cells).items(), strict=True):
        assert one["columns"] == ["abc"[place] for place in pair] and one["good"] and one["people"] < 100
        assert one["fit"] <= off + 0.01
        assert one["noise"] == pytest.approx(0.5 * np.sqrt(2.0 / np.pi) * error[pair].sum())
    assert invoke(["synthesize", str(release), "--out", str(made)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert invoke(["synthesize", str(release)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "a and b" in shown and "No standard errors can be quoted" in shown


@pytest.mark.exhaust
def test_a_rehearsal_writes_no_synthetic_table_and_says_where_people_are_too_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {**CONFIG, "mode": "rehearsal", "seed": 1}
    page = render_html(dt.run(few, table=TABLE.head(60), out=tmp_path / "out").document())
    assert "Noise is larger than a typical cell in the table of a and b (it takes" in page
    capsys.readouterr()
    assert invoke(["synthesize", str(tmp_path / "out"), "--out", str(tmp_path / "made.parquet")]) == 2
    assert "a rehearsal, which protects nobody" in capsys.readouterr().err
    assert invoke(["synthesize", str(tmp_path / "out" / "report.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "too few people: it takes" in shown and not (tmp_path / "made.parquet").exists()
    (tmp_path / "other.json").write_text("{}")
    for wrong in ("other.json", "none.json", "."):
        assert invoke(["synthesize", str(tmp_path / wrong)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.exhaust
def test_it_runs_in_many_files(tmp_path: Path) -> None:
    TABLE.write_parquet(tmp_path / "table.parquet")
    config = {**CONFIG, "data": {**CONFIG["data"], "path": str(tmp_path / "table.parquet")}}
    report = dt.engine.run(config, out=tmp_path / "out", ledger=tmp_path / "ledger", engine="processes", workers=1)
    overall = report.evaluation.estimates.overall
    off = np.abs(np.array(overall.value) - ASKED.truth(CODES))
    assert (off < 8.0 * np.array(overall.standard_error)).all()
    wrong = TABLE.with_columns(c=pl.when(pl.col("id") == 5).then(pl.lit("?")).otherwise("c"))
    wrong.write_parquet(tmp_path / "table.parquet")
    with pytest.raises(DataError, match="categories"):
        dt.engine.run(config, out=tmp_path / "b", ledger=tmp_path / "ledger", engine="processes", workers=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": {"ask": "tables", "others": "b"}}, "`others` must be columns with their categories"),
        ({"question": {"ask": "tables", "others": "b: p"}}, "two different categories or more"),
        ({"question": {"ask": "tables", "others": 5}}, "`others` must be columns with their categories.* got 5"),
        ({"question": {"ask": "tables", "others": {"b": 5}}}, "`others` must be columns with their categories"),
        ({"question": {"ask": "tables", "others": {"b": ["p"]}}}, "two different categories or more"),
        ({"question": {"ask": "tables", "others": "b: p | q; b: r | s"}}, "two different categories or more"),
        ({"question": {"ask": "tables", "others": "a: p | q"}}, "other columns than 'a'"),
        ({"data": {"private": "a", "lower": 0.0, "upper": 1.0}}, "declare `categories`"),
        ({"promise": {}, "randomize": {"epsilon": 3.0}}, "takes several symbols of a person"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        dt.run({**CONFIG, **changes}, table=TABLE, ledger=tmp_path)
    assert "\n" not in str(refused.value)


def test_columns_are_written_as_a_text_or_as_a_table_whose_categories_may_hold_any_sign(tmp_path: Path) -> None:
    file = tmp_path / "it.toml"
    file.write_text(
        'schema_version = 1\nmode = "rehearsal"\ndata = { path = "t", private = "a" }\n'
        'promise = { trust = "shuffler", epsilon = 1.0 }\n[question]\nask = "tables"\n'
        '[question.others]\n"b" = ["p;1", "q|2"]\nc = "m | f"\n'
    )
    question: Any = load_config(file).question
    found = Tables(("x", "y"), question.others).others
    assert found == (("b", ("p;1", "q|2")), ("c", ("m", "f"))) == Tables(("x", "y"), found).others
    assert Tables(("x", "y"), "b: p | q").others == Tables(("x", "y"), {"b": ["p", "q"]}).others


def test_values_that_were_not_declared_are_counted(tmp_path: Path) -> None:
    config = {**CONFIG, "question": {"ask": "tables", "others": "b: p | q; c: m | f"}}
    with pytest.raises(DataError, match=r"private column 'b': .* values are not among the declared categories"):
        dt.run(config, table=TABLE, ledger=tmp_path)


@pytest.mark.exhaust
def test_a_plan_takes_gaussian_dummies_where_tables_are_many() -> None:
    data = {"categories": ["yes", "no"]}
    few, many = (
        plan_question(
            "tables", settings={"others": others}, data=data, n=100_000, trust="shuffler", epsilon=1.0, delta=1e-6
        )
        for others in ("a: x | y", "a: x | y; b: x | y; c: x | y; d: x | y")
    )
    assert (few.noise.name, many.noise.name) == ("shuffler", "gaussian")
    geometric = plan_question(
        "tables",
        settings={"others": "a: x | y; b: x | y; c: x | y; d: x | y"},
        data=data,
        n=100_000,
        trust="shuffler",
        epsilon=1.0,
        delta=1e-6,
        dummies="geometric",
    )
    assert many.error95 < 0.9 * geometric.error95
