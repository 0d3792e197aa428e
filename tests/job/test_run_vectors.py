"""A run on a column of arrays: how they are read, what is said of shortening and errors, released once, planned."""

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.account.amplify import amplify
from dovetail.account.questions import JointReport
from dovetail.cli.main import invoke
from dovetail.core.errors import ConfigError, DataError, DovetailError, ParameterError
from dovetail.core.guarantee import CentralDP
from dovetail.job.config import parse_config
from dovetail.job.question_plan import QuestionPlan, plan_question
from dovetail.plan.infeasible import InfeasibleError
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail.randomize.vectors.closest_direction import ClosestDirection
from dovetail.report.html import render_html
from dovetail.report.tables import summary
from dovetail.table.arrays import read_arrays

N, D = 400, 4


def arrays() -> np.ndarray:
    """Half of them of length 1, a quarter of length 2, a quarter 0."""
    rows = np.zeros((N, D))
    rows[: N // 2, 0], rows[N // 2 : 3 * N // 4, 1] = 1.0, -2.0
    return rows


def people() -> pl.DataFrame:
    return pl.DataFrame({"device": [f"device {i}" for i in range(N)], "gradient": pl.Series(arrays().tolist())})


def config(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "schema_version": 1, "mode": "rehearsal", "seed": 1, "data": {"person": "device", "private": "gradient"},
        "vector": {"dimension": D, "clip": 1.0, "epsilon": 2.0},
    }  # fmt: skip
    for name, value in changes.items():
        base[name] = {**base.get(name, {}), **value} if isinstance(value, dict) else value
    return {name: value for name, value in base.items() if value is not None}


@pytest.mark.exhaust
def test_a_rehearsal_says_how_far_off_it_is_and_what_shortening_did() -> None:
    report = dt.run(config(), table=people())
    noise = ClosestDirection(D, 1.0, 2.0)
    document = report.document()
    vector, overall = document["estimates"]["vector"], report.evaluation.estimates.overall
    assert vector["clipped"] == N // 4 and vector["clipping"] == pytest.approx(0.25)
    assert overall.truth == pytest.approx([0.5, -0.25, 0.0, 0.0])
    assert vector["off"] == pytest.approx(math.dist(overall.value, overall.truth or []))
    assert vector["off"] < 5.0 * vector["error"] and vector["error"] == noise.error(N)
    assert vector["error95"] == noise.error95(N) > vector["error"] > vector["coordinate_error"]
    assert document["central"]["epsilon"] == amplify(noise, n=N, delta=1e-6).epsilon
    assert document["local"]["epsilon"] == noise.guarantee.epsilon
    told = " ".join([*summary(document), *report.assumptions])
    assert "a vector of 4 numbers, of length at most 1" in told and "100 of 400 vectors (25%)" in told
    assert "a vector of 4 numbers" in render_html(json.loads(json.dumps(document)))


@pytest.mark.exhaust
def test_a_release_is_drawn_once_and_tells_nothing_exact(tmp_path: Path) -> None:
    given = config(mode="release", seed=None, vector={"randomizer": "closest_direction"})
    one, two = (dt.run(given, table=people(), ledger=tmp_path) for _ in range(2))
    assert one.sanitized.equals(two.sanitized) and one.sanitized.columns == ["report"]
    vector = one.document()["estimates"]["vector"]
    assert all(vector[name]["value"] is None for name in ("off", "clipped", "clipping"))
    assert one.evaluation.estimates.overall.truth is None and "of 400 vectors" not in " ".join(one.assumptions)
    estimate = ClosestDirection(D, 1.0, 2.0).estimate(one.sanitized["report"].to_numpy())
    assert estimate.tolist() == one.evaluation.estimates.overall.value
    with pytest.raises(DovetailError, match="other terms"):
        dt.run(config(mode="release", seed=None, vector={"clip": 2.0}), table=people(), ledger=tmp_path)
    again = dt.run(given, table=people(), ledger=tmp_path, new_release=True)
    assert again.evaluation.local.epsilon == pytest.approx(4.0)
    assert again.evaluation.central.epsilon == pytest.approx(2.0 * one.evaluation.central.epsilon)


@pytest.mark.exhaust
def test_fewer_honest_people_weaken_the_promise() -> None:
    noise = ClosestDirection(D, 1.0, 2.0)
    found = amplify(noise, n=4 * N, delta=1e-6, honest=N)
    assert found.epsilon == amplify(noise, n=N, delta=1e-6).epsilon > found.all


def test_two_releases_with_a_local_delta_promise_no_number_together(tmp_path: Path) -> None:
    given = config(mode="release", seed=None, vector={"randomizer": "gaussian", "delta0": 1e-5})
    first = dt.run(given, table=people(), ledger=tmp_path)
    assert (first.evaluation.local.epsilon, first.evaluation.local.delta) == (2.0, 1e-5)
    assert first.sanitized.columns == [f"report_{part}" for part in range(D)]
    again = dt.run(given, table=people(), ledger=tmp_path, new_release=True)
    assert math.isinf(again.evaluation.local.epsilon)


def test_the_same_people_are_read_from_every_kind_of_file(tmp_path: Path) -> None:
    rows, names = arrays(), people()["device"].to_numpy()
    people().write_parquet(tmp_path / "lists.parquet")
    people().with_columns(pl.col("gradient").cast(pl.Array(pl.Float64, D))).write_parquet(tmp_path / "arrays.parquet")
    np.savez(tmp_path / "both.npz", gradient=rows.astype(np.float32), device=names.astype(str))
    np.save(tmp_path / "bare.npy", rows.astype(np.int64))
    data = parse_config(config()).data
    named = [
        read_arrays(data.model_copy(update={"path": str(tmp_path / name)}), dt.simulation(seed), dimension=D).content
        for seed, name in enumerate(("lists.parquet", "arrays.parquet", "both.npz"))
    ]
    assert len(set(named)) == 1
    bare = data.model_copy(update={"path": str(tmp_path / "bare.npy"), "person": None})
    from_file, from_memory = (
        read_arrays(bare, dt.simulation(1), dimension=D),
        read_arrays(bare, dt.simulation(2), dimension=D, table=rows),
    )
    assert from_file.content == from_memory.content != named[0]
    assert not np.array_equal(from_file.values, from_memory.values)  # in another order
    moved = read_arrays(data, dt.simulation(1), dimension=D, table=people().with_columns(pl.col("device").reverse()))
    assert moved.content != named[0]


def changed(row: Any, place: int = 2) -> pl.DataFrame:
    """The table with another array in one row."""
    rows = [*people()["gradient"].to_list()]
    rows[place] = row
    return people().with_columns(pl.Series("gradient", rows, dtype=pl.List(pl.Float64)))


BAD = [
    (changed([1.0, 2.0]), r"1 of 400 arrays does not have 4 numbers \(at row 3; lengths from 2 to 4\)"),
    (changed([]), "lengths from 0 to 4"),
    (changed([1.0, math.nan, 0.0, 0.0]), r"1 of 400 arrays holds a missing, .* \(at row 3\)"),
    (changed([1.0, math.inf, 0.0, 0.0]), "missing, infinite or NaN"),
    (changed([1.0, None, 0.0, 0.0]), "missing, infinite or NaN"),
    (changed(None), r"1 value is missing \(at row 3\)"),
    (people().with_columns(pl.lit(1.0).alias("gradient")), "type Float64: .*declare `lower` and `upper`"),
    (people().with_columns(pl.lit("x").alias("gradient")), "type String: .vector. needs arrays of numbers"),
    (people().with_columns(pl.Series("gradient", [["a"]] * N)), "needs arrays of numbers"),
    (people().with_columns(pl.Series("gradient", [[[1.0]]] * N)), "needs arrays of numbers"),
    (people().rename({"gradient": "gradients"}), "no column 'gradient'; did you mean 'gradients'"),
    (people().with_columns(pl.lit("x").alias("device")), r"1 pe.* in more than .*, so keep one row each\.$"),
    (people().head(0), "no rows"),
    (np.zeros((3, D)), "an array has no column 'device'"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "words"), BAD, ids=[words for _, words in BAD])
def test_arrays_that_cannot_be_are_refused_in_one_line(table: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as refused:
        dt.run(config(), table=table)
    assert "\n" not in str(refused.value)


def test_another_dimension_is_told_with_both_numbers() -> None:
    with pytest.raises(DataError, match="arrays have 4 numbers, and `dimension` is 5"):
        dt.run(config(vector={"dimension": 5}), table=people())


@pytest.mark.parametrize(
    ("name", "words"),
    [("no.npy", "no such file"), ("objects.npy", "not readable as arrays"), ("text.npy", "not readable as arrays"),
     ("flat.npy", r"got shape \(4,\)"), ("other.npz", "has no array 'gradient'"), ("t.csv", "save it as Parquet"),
     ("few.npz", "names 2 people for 3 arrays"), ("x" * 999 + ".csv", "cannot be read")],
)  # fmt: skip
def test_files_that_hold_no_arrays_are_refused_in_one_line(tmp_path: Path, name: str, words: str) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    (tmp_path / "text.npy").write_text("1,2")
    (tmp_path / "t.csv").write_text("device,gradient\n1,2\n")
    np.save(tmp_path / "flat.npy", np.zeros(4))
    np.savez(tmp_path / "other.npz", gradients=np.zeros((3, 4)))
    np.savez(tmp_path / "few.npz", gradient=np.zeros((3, 4)), device=np.array(["a", "b"]))
    given = config(data={"path": str(tmp_path / name), "private": "gradient"})
    if name != "few.npz":
        del given["data"]["person"]
    with pytest.raises(DataError, match=words):
        dt.run(given)


ODD = {
    "one number": np.array(1.0), "two columns": np.zeros((N, 2)), "seconds": np.zeros(N, "m8[s]"),
    "records": np.zeros(N, [("a", float)]), "bytes": np.full(N, b"a"), "complex": np.zeros(N, complex),
    "long doubles": np.zeros(N, np.longdouble),
}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("role", ["person", "public"])
def test_arrays_that_name_nobody_are_refused_by_shape_and_type(odd: str, role: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", gradient=arrays(), odd=ODD[odd])
    data: dict[str, Any] = {"path": str(tmp_path / "t.npz"), "private": "gradient", "person": None, "public": []}
    given = config(data=data | {role: "odd" if role == "person" else ["odd"]})
    with pytest.raises(DataError, match=r"column 'odd' must be an array of one .* got shape \(.*\) of .*\.$"):
        dt.run(given)


def test_dates_and_texts_of_numpy_name_people(tmp_path: Path) -> None:
    days = np.arange("2020-01-01", "2021-06-01", dtype="M8[D]")[:N]
    for names in (days, days.astype(str), days.astype("M8[s]"), np.arange(N)):
        np.savez(tmp_path / "t.npz", gradient=arrays(), odd=names)
        given = config(data={"path": str(tmp_path / "t.npz"), "private": "gradient", "person": "odd"})
        assert dt.run(given).document()["collection"]["n"] == N


def test_a_member_of_an_archive_that_is_no_array_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("gradient.npy", "no array")
    given = config(data={"path": str(tmp_path / "t.npz"), "private": "gradient"})
    del given["data"]["person"]
    with pytest.raises(DataError, match="'gradient' is not an array as numpy writes them"):
        dt.run(given)


@pytest.mark.parametrize("randomizer", sorted(kind.name for kind in VECTOR_RANDOMIZERS))
@pytest.mark.parametrize("clip", [1e-100, 1e-60, 1e60, 1e100])
def test_lengths_of_any_size_are_reported_in_their_unit(randomizer: str, clip: float) -> None:
    """Everything that has the unit of a length is that many times what it is with a length of 1."""
    table = people().with_columns(gradient=pl.Series((arrays() * clip).tolist()))
    shown = dt.run(config(vector={"clip": clip, "randomizer": randomizer}), table=table)
    render_html(shown.document())
    vector = shown.document()["estimates"]["vector"]
    for name in ("error", "coordinate_error", "error95"):
        one = getattr(VECTOR_RANDOMIZERS[randomizer](D, 1.0, 2.0), name)(N)
        assert vector[name] == pytest.approx(clip * one, rel=1e-9)


def test_vectors_whose_lengths_are_no_doubles_are_shortened_and_reported() -> None:
    huge = people().with_columns(gradient=pl.Series((arrays() * 8e307).tolist()))
    shown = dt.run(config(vector={"clip": 1e100}), table=huge)
    assert "were shortened, which moved the mean by" in " ".join(summary(shown.document()))
    assert render_html(shown.document())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"promise": {"delta": 1e-6}}, r"\[promise\] does not go with \[vector\]"),
        ({"strings": {"epsilon": 1.0}}, r"\[strings\] does not go with \[vector\]"),
        ({"data": {"lower": 0.0, "upper": 1.0}}, r"\[data\] lower does not go with \[vector\]"),
        ({"data": {"categories": ["a", "b"]}}, r"\[data\] categories does not go with"),
        ({"data": {"public": ["age"]}}, "no column 'age'"),
        ({"data": {"duplicates": "first"}}, "one whole array of each person"),
        ({"vector": {"clip": 0.0}}, "`vector.clip` must be greater than 0"),
        ({"vector": {"clip": 1e101}}, r"\[vector\] `clip` must be from 1e-100 to 1e\+100, got 1e\+101\.$"),
        ({"vector": {"dimension": 0}}, "`vector.dimension` must be"),
        ({"vector": {"clips": 1.0}}, "unknown key `vector.clips`; did you mean 'clip'"),
        ({"vector": {"seed": 1}}, "unknown key `vector.seed`"),
        ({"vector": {"axes": 0}}, "`vector.axes` must be"),
        ({"vector": {"randomizer": "closest"}}, "did you mean 'closest_direction'"),
        ({"vector": {"honest": 500}}, "`vector.honest` must be at most the 400 people"),
        ({"vector": {"randomizer": "rotated_blocks", "signs": 8}}, r"\[vector\] `signs` must be one of 1, 2, 4"),
        ({"vector": {"randomizer": "gaussian", "dimension": 4000, "epsilon": 0.01}}, r"\[vector\] `epsilon` must be"),
        ({"mode": "release"}, "refuses `seed`"),
    ],
)
def test_what_does_not_go_with_vectors_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DovetailError, match=words):
        dt.run(config(**changes), table=people())


def test_check_says_how_many_are_shortened_and_whether_noise_is_larger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people().write_parquet("t.parquet")
    text = 'schema_version = 1\nmode = "rehearsal"\n[data]\npath = "t.parquet"\nprivate = "gradient"\n[vector]\n'
    for name, rest in (("a", "clip = 1.0\nepsilon = 0.1"), ("b", "clip = 1.0\nepsilon = 4.0\nhonest = 3")):
        Path(f"{name}.toml").write_text(f"{text}dimension = {4 if name == 'a' else 3}\n{rest}\n")
    assert invoke(["check", "a.toml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [problem["what"][:22] for problem in found["problems"]] == [
        "100 of 400 vectors (25",
        "the noise, 2.51 in Euc",
    ]
    assert invoke(["check", "b.toml", "--strict"]) == 1
    assert "arrays have 4 numbers" in capsys.readouterr().out


@pytest.mark.exhaust
def test_a_plan_becomes_a_run_with_the_same_promise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["plan", "--question", "vector", "--dimension", "4", "--clip", "1", "--n", "400", "--delta", "1e-6"]
    asked += ["--randomizer", "closest_direction"]
    assert invoke([*asked, "--epsilon0", "2", "--out", "plan.toml", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    Path("plan.toml").write_text(
        Path("plan.toml").read_text().replace("FILL IN.parquet", "t.parquet").replace("FILL IN", "gradient", 2)
    )
    people().write_parquet("t.parquet")
    assert invoke(["run", "plan.toml", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert plan["epsilon"] == document["central"]["epsilon"] and plan["epsilon0"] == 2.0 == plan["local"]["epsilon"]
    vector = document["estimates"]["vector"]
    assert plan["coordinate_error"] == vector["coordinate_error"] and plan["bias"] == vector["bias"]
    assert (plan["error95"], plan["standard_error"]) == (vector["error95"], vector["error"])
    assert invoke([*asked, "--epsilon0", "2"]) == 0
    assert "in Euclidean length with 95" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--clip", "1"], "needs --dimension"),
        (["--dimension", "4"], "needs --clip"),
        (["--dimension", "4", "--clip", "1", "--k", "3"], "--k does not go with --question vector"),
        (["--dimension", "4", "--clip", "1", "--n", "100"], "give one of --error, --epsilon and --epsilon0"),
        (["--dimension", "4", "--clip", "1", "--error", "1"], "without --n, give two of"),
        (["--dimension", "4", "--clip", "-1", "--n", "9", "--error", "1"], "--clip must be greater than 0"),
        (["--dimension", "4", "--clip", "1", "--n", "100", "--error", "1e-3"], "cannot be had from 100 people"),
    ],
)
def test_plans_that_cannot_be_are_refused(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["plan", "--question", "vector", *options]) == 2
    assert words in capsys.readouterr().err
    assert invoke(["plan", "--question", "mean", "--clip", "1"]) == 2
    assert "--clip goes with --question vector" in capsys.readouterr().err


def plan_vectors(*, dimension: int, clip: float, **wishes: Any) -> QuestionPlan:
    return plan_question("vector", settings={"dimension": dimension, "clip": clip}, data={}, **wishes)


def test_a_plan_compares_the_randomizers_of_vectors() -> None:
    plan = plan_vectors(dimension=50, clip=2.0, n=20_000, epsilon0=2.0)
    (other,) = plan.others.values()
    assert isinstance(other, QuestionPlan) and plan.error95 < other.error95
    assert [plan.noise.randomizer.name, other.noise.randomizer.name] == ["closest_direction", "rotated_blocks"]
    assert plan.error95 == ClosestDirection(d=50, radius=2.0, epsilon=2.0).error95(20_000)


@pytest.mark.exhaust
def test_whatever_is_left_out_is_solved_for() -> None:
    fixed: dict[str, Any] = {"dimension": 50, "clip": 2.0, "delta": 1e-6, "randomizer": "closest_direction"}
    full = plan_vectors(**fixed, n=20_000, epsilon0=2.0)
    assert isinstance(full.central, CentralDP)
    by_error = plan_vectors(**fixed, n=20_000, error=full.error95)
    assert by_error.error95 <= full.error95 and by_error.noise.local.epsilon == pytest.approx(2.0, rel=1e-3)
    people = plan_vectors(**fixed, error=full.error95, epsilon0=2.0)
    assert people.error95 <= full.error95 and people.people.n == pytest.approx(20_000, rel=1.5e-3)
    with pytest.raises(InfeasibleError) as refused:
        plan_vectors(**fixed, n=2000, error=0.01)
    ways = dict(refused.value.ways)
    assert plan_vectors(**fixed, n=2000, error=ways["error"]).error95 <= ways["error"]
    assert plan_vectors(**fixed, n=int(ways["n"]), error=0.01).error95 <= 0.01


@pytest.mark.exhaust
def test_whatever_is_left_out_is_solved_for_under_a_central_epsilon() -> None:
    fixed: dict[str, Any] = {"dimension": 50, "clip": 2.0, "delta": 1e-6}
    by_epsilon = plan_vectors(**fixed, n=20_000, epsilon=0.2)
    assert set(by_epsilon.others) == {"rotated_blocks"}  # a local delta is nothing to be had unasked
    assert 0.19 < by_epsilon.central.epsilon <= 0.2 and by_epsilon.noise.randomizer.name == "closest_direction"
    people = plan_vectors(**fixed, error=by_epsilon.error95, epsilon=0.2)
    assert people.people.n == pytest.approx(20_000, rel=0.02) and people.central.epsilon <= 0.2
    with pytest.raises(InfeasibleError) as refused:
        plan_vectors(**fixed, n=2000, error=0.3, epsilon=0.1)
    for name, value in refused.value.ways:
        wishes = {"n": 2000, "error": 0.3, "epsilon": 0.1} | {name: int(value) if name == "n" else value}
        assert plan_vectors(**fixed, **wishes).error95 <= wishes["error"]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", VECTOR_RANDOMIZERS.names())
def test_tallies_of_vectors_are_whole_numbers_that_add_however_they_are_split(name: str) -> None:
    kind: Any = VECTOR_RANDOMIZERS[name]
    noise = kind(d=3, radius=2.0, epsilon=4.0)
    reports = noise.randomize(np.full((600, 3), 0.4), dt.simulation(1))
    whole = noise.tally(reports)
    apart = [sum(noise.tally(part) for part in np.array_split(reports[::-1], pieces)) for pieces in (2, 7, 600)]
    assert whole.dtype == np.int64 and all(np.array_equal(one, whole) for one in apart)
    assert np.array_equal(noise.invert(whole, 600), noise.estimate(reports))


def test_a_table_in_files_is_rehearsed_with_the_truth_that_memory_knows_and_by_group(tmp_path: Path) -> None:
    table = people().with_columns(pl.Series("site", ["a", "b"] * (N // 2)))
    table.head(150).write_parquet(tmp_path / "one.parquet")
    table.tail(N - 150).write_parquet(tmp_path / "two.parquet")
    shuffle = {"shuffler": "within_groups", "groups": {"labels": "site"}}
    given = config(data={"public": ["site"]}, shuffle=shuffle, estimate={"by": ["site"]})
    here = dt.run(given, table=table).document()["estimates"]
    asked = {**given, "data": {**given["data"], "path": str(tmp_path / "*.parquet")}}
    files = dt.engine.run(asked, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1).document()["estimates"]
    assert files["overall"]["truth"] == here["overall"]["truth"] == [0.5, -0.25, 0.0, 0.0]
    for name in ("clipped", "clipping", "error95"):
        assert files["vector"][name] == here["vector"][name]
    assert [one["truth"] for one in files["groups"]] == [one["truth"] for one in here["groups"]]
    assert files["vector"]["off"] < 6.0 * files["vector"]["error"]  # false alarm below 1e-8


def test_arrays_in_files_that_cannot_be_are_counted_and_refused(tmp_path: Path) -> None:
    rows = [[1.0], [1.0, math.nan, 0.0, 0.0], None, *([[0.0] * D] * 7)]
    broken = people().head(10).with_columns(pl.Series("gradient", rows, dtype=pl.List(pl.Float64)))
    broken.write_parquet(tmp_path / "t.parquet")
    given = config(data={"path": str(tmp_path / "t.parquet")})
    with pytest.raises(DataError, match="3 values are no arrays of as many finite numbers"):
        dt.engine.run(given, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)
    people().with_columns(gradient=pl.lit(1.0)).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="needs arrays of numbers"):
        dt.engine.run(given, out=tmp_path / "out", ledger=tmp_path / "ledger", workers=1)


def test_vectors_are_planned_by_the_search_of_every_question() -> None:
    plan = plan_question("vector", settings={"dimension": 4, "clip": 1.0}, data={}, n=400, epsilon0=2.0, delta=1e-6)
    noise = ClosestDirection(4, 1.0, 2.0)
    assert (plan.error95, plan.standard_error) == (noise.error95(400), noise.error(400))
    assert plan.central.epsilon == amplify(noise, n=400, delta=1e-6).epsilon
    assert plan.noise.randomizer == noise and parse_config(dict(plan.config)).choices == (
        "vector",
        "local",
        "uniform",
    )


def test_a_release_says_how_to_estimate_from_it_and_a_plan_is_filled_in_by_hand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    report = dt.run(config(mode="release", seed=None), table=people(), ledger=tmp_path / "led", out=tmp_path / "out")
    assert invoke(["estimate", "out/sanitized.parquet", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["overall"]["value"] == report.evaluation.estimates.overall.value
    asked = ["plan", "--question", "vector", "--dimension", "4", "--clip", "1", "--n", "400", "--epsilon0", "2"]
    assert invoke([*asked, "--out", "plan.toml"]) == 0
    assert "FILL IN.parquet" in Path("plan.toml").read_text() and "dovetail run" in Path("plan.toml").read_text()
    people().write_parquet("t.parquet")
    assert invoke(["check", "t.parquet", "--private", "gradient", "--plan", "plan.toml"]) == 2
    assert "is a plan for vectors: write `path` and" in capsys.readouterr().err


def test_a_vector_is_not_asked_beside_other_answers(tmp_path: Path) -> None:
    both = {
        "schema_version": 1, "mode": "rehearsal", "data": {"person": "device"},
        "questions": [
            {"column": "gradient", "ask": "vector", "dimension": 4, "clip": 1.0, "epsilon": 1.0},
            {"column": "answer", "categories": ["no", "yes"], "epsilon": 1.0},
        ],
    }  # fmt: skip
    with pytest.raises(ConfigError, match="is asked by itself: several answers are accounted by the channel of each"):
        dt.run(both, table=people())
    with pytest.raises(ParameterError, match="`parts` must be"):
        JointReport((ClosestDirection(4, 1.0, 1.0), dt.KRR(k=2, epsilon=1.0)))
