"""The experiments between no shuffle and a uniform one: their ends are exact, and what they leave can be resumed."""

import json
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from studies import iclr
from studies.fig1 import run as fig1
from studies.fig4 import run as fig4
from studies.fig5 import run as fig5
from studies.fig8 import run as fig8
from studies.iclr_claims import between, compared, ends, listed
from studies.iclr_draw import ticks
from studies.iclr_worlds import adult, friendship_axes, pretend_adult, pretend_twitch, some_members, syn, twitch
from studies.resumable import resumed

from dovetail.cli.main import invoke
from dovetail.core.entropy import simulation
from dovetail.core.errors import DataError, ParameterError
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.uniform import Uniform

STUDIES = (fig4, fig5, fig8)
EACH = pytest.mark.parametrize("study", STUDIES, ids=lambda study: str(study.__name__))
SHOWN: dict[Any, dict[str, tuple[str, ...]]] = {
    fig4: {"california": ("rho", "lambda"), "twitch": ("rho", "lambda")},
    fig5: {"syn": ("rho", "lambda", "accuracy_8", "accuracy_4", "accuracy_2")},
    fig8: {"adult": ("rho", "rho_rare", "lambda")},
}
GIVEN: dict[str, Any] = {
    "seed": 3, "epsilon": 2.5, "votes": 15, "trials": 2, "randomizations": 5,
    "syn": {"near": 0.3}, "adult": {"near": 2.0}, "twitch": {"axes": 3},
}  # fmt: skip

sklearn = pytest.importorskip("sklearn")


def folder(study: Any) -> Path:
    return Path(study.__file__).parent


@cache
def toy(study: Any) -> tuple[pl.DataFrame, Path]:
    """The toy of a study, run once, and where it wrote."""
    out = Path(mkdtemp())
    return study.main(False, out), out


@cache
def crescents() -> iclr.World:
    rng = simulation(1)
    return syn(nested_crescents(300, rng=rng), GIVEN, rng, test=np.zeros((1, 2)))


def measured(
    world: iclr.World, mechanism: str, alpha: float | None = None, size: float | None = None
) -> dict[str, Any]:
    cell = {"set": "any", "mechanism": mechanism, "alpha": alpha, "size": size}
    return iclr.measured(world, cell, GIVEN, also=lambda laws, batch, rng: {})


@pytest.mark.exhaust
@EACH
def test_a_toy_holds_what_is_claimed(study: Any) -> None:
    assert {claim for claim, held in study.verdict(toy(study)[0]).items() if not held} == set()


@pytest.mark.exhaust
@EACH
def test_a_study_leaves_a_table_and_says_what_its_columns_are(study: Any) -> None:
    table, out = toy(study)
    facts = json.loads((out / "record.json").read_text())
    assert facts["size"] == "toy" and {"seed", "commit", "machine"} <= facts.keys()
    assert pl.read_csv(out / f"{folder(study).name}.csv", infer_schema_length=None).columns == table.columns
    assert pl.read_csv(folder(study) / "results.csv", infer_schema_length=None).columns == table.columns
    readme = (folder(study) / "README.md").read_text()
    assert readme.startswith("# Claim: ")
    readme += (folder(fig4) / "README.md").read_text()  # has the columns that all share
    assert [name for name in table.columns if not name.endswith("_sd") and f"`{name}`" not in readme] == []


@EACH
def test_the_results_in_the_checkout_are_full_and_those_of_the_readme(study: Any) -> None:
    facts = json.loads((folder(study) / "record.json").read_text())
    given = iclr.settings(study.__file__, full=True)
    assert facts["size"] == "full" and facts["seed"] == given["seed"]
    table = pl.read_csv(folder(study) / "results.csv", infer_schema_length=None)
    readme = (folder(study) / "README.md").read_text()
    for name, columns in SHOWN[study].items():
        assert table.filter(set=name)["size"].drop_nulls().unique().sort().to_list() == given[name]["sizes"]
        assert listed(table, name, *columns) in readme
    for claim, held in study.verdict(table).items():
        assert held or f"**not held: {claim}**" in readme, claim


@pytest.mark.parametrize("study", [fig1, *STUDIES], ids=lambda study: str(study.__name__))
def test_the_picture_of_the_full_run_stands_in_the_readme(study: Any) -> None:
    name = folder(study).name
    assert (folder(study) / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"]({name}.png)" in (folder(study) / "README.md").read_text()


def test_ticks_that_would_stand_on_each_other_have_no_words() -> None:
    assert ticks([2.4, 15.5, 18.6, 226.0]) == ([2.4, 15.5, 18.6, 226.0], ["2.4", "16", "", "226"])


@pytest.mark.exhaust
def test_a_panel_is_drawn_of_its_own_set(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    rows = toy(fig4)[0]
    assert {name for name, _ in fig4.PANELS.values()} == {*rows["set"], "pudf"}  # whose owners alone may have it
    for panel, (name, column) in fig4.PANELS.items():
        if name == "pudf":
            continue
        axes = fig4.one(pyplot, rows.filter(set=name), panel).axes
        drawn = {line.get_label(): list(line.get_ydata()) for line in axes[0].lines}
        best = rows.filter(set=name, mechanism="best").sort("group_size")
        assert drawn["best shuffler"] == best[column].to_list() and axes[1].get_ylabel().startswith(r"$\theta n$")
    pyplot.close("all")


@pytest.mark.exhaust
def test_an_interrupted_study_goes_on_and_ends_with_the_same_table(tmp_path: Path) -> None:
    table, out = toy(fig8)
    lines = (out / "cells.jsonl").read_text().splitlines(keepends=True)
    torn = tmp_path / "cells.jsonl"
    torn.write_text("".join(lines[:-2]) + lines[-2][:40])  # two cells are missing, one of them half written
    assert_frame_equal(fig8.main(False, tmp_path), table)
    assert torn.read_text() == "".join(lines)


def test_what_is_finished_is_not_measured_again(tmp_path: Path) -> None:
    seen: list[int] = []

    def measure(cell: dict[str, Any]) -> dict[str, Any]:
        if cell["i"] in seen or len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(cell["i"])
        return {"square": cell["i"] ** 2}

    cells, path = [{"i": i} for i in range(4)], tmp_path / "cells.jsonl"
    with pytest.raises(KeyboardInterrupt):
        resumed(path, cells, measure, parameters={"p": 1})
    seen.clear()
    assert [row["square"] for row in resumed(path, cells, measure, parameters={"p": 1})] == [0, 1, 4, 9]
    assert seen == [2, 3]


def test_rows_of_other_parameters_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    resumed(path, [{"i": 1}], lambda cell: {"found": 1}, parameters={"alpha": 4})
    with pytest.raises(DataError, match="other parameters"):
        resumed(path, [{"i": 1}], lambda cell: {"found": 2}, parameters={"alpha": 5})


@pytest.mark.exhaust
@pytest.mark.parametrize("mechanism", ["exact", "best"])
def test_at_infinite_alpha_a_mechanism_is_no_shuffle_in_every_figure(mechanism: str) -> None:
    ldp, still = measured(crescents(), "LDP"), measured(crescents(), mechanism, np.inf, 0.2)
    about = {"group_size", "shuffler", "theta_n"}
    assert {key: ldp[key] for key in ldp.keys() - about} == {key: still[key] for key in still.keys() - about}
    assert ldp["moved"] == 0.0


def test_no_shuffle_is_the_attack_on_the_reports_as_they_are() -> None:
    world = crescents()
    right, rng = np.zeros(300), simulation(8)
    for _ in range(4):
        right += world.attack.guess(world.krr.randomize(world.values, rng), rng) == world.values
    assert (iclr.success(world, np.arange(300), randomizations=4, rng=simulation(8)) == right / 4).all()


def test_the_uniform_shuffle_moves_reports_as_far_as_strangers_are_apart() -> None:
    """Ten orders: the mean of `moved` is within a tenth of 1, eight standard errors."""
    world = crescents()
    far = [iclr.moved(world.places, Uniform(300).permutation(simulation(seed))) for seed in range(20)]
    assert np.mean(far[:10]) / np.mean(far[10:]) == pytest.approx(1.0, abs=0.1)


def test_theta_n_is_that_of_the_order_and_for_noise_of_the_order_that_moves_as_far() -> None:
    groups = Groups.from_labels(range(40), radius=3)
    mallows, noise = Mallows.single(groups, alpha=2.0), NoisySort.fit(groups, alpha=2.0)
    assert iclr.theta_n(mallows) == pytest.approx(mallows.theta * 40, rel=1e-12)
    assert iclr.theta_n(noise) == pytest.approx(2 * np.log(2) * 40 / noise.displacements()[0], rel=1e-12)
    assert iclr.theta_n(Uniform(40)) is None


def test_the_mean_group_counts_owners_and_those_who_are_alone() -> None:
    assert iclr.mean_size(Groups.from_labels(["a", "a", "a", "b"])) == (3 + 3 + 3 + 1) / 4


def test_friends_vote_and_nobody_else() -> None:
    people, pairs = pretend_twitch(80, simulation(2))
    world = twitch(people, pairs, GIVEN, simulation(3))
    known = {(one, other) for row in pairs.iter_rows() for one, other in (row, row[::-1])}
    for person, seats in enumerate(world.attack.places):
        chosen = seats[seats >= 0].tolist()
        assert chosen[0] == person and len(set(chosen)) == len(chosen)
        assert all((person, other) in known for other in chosen[1:])
    few = some_members(world.near, 3, simulation(4))
    assert few.shape == (80, 3) and (few >= 0).all()


def test_only_people_of_the_same_age_and_marital_status_vote_where_there_are_enough() -> None:
    table = pretend_adult(4000, simulation(2))
    world = adult(table, GIVEN, simulation(3))
    ages, married = table["age"].to_numpy(), table["marital_status"].to_numpy()
    seats = world.attack.places
    assert (np.abs(ages[seats] - ages[:, None]) <= 2).all() and (married[seats] == married[:, None]).all()


def test_a_verdict_can_fail() -> None:
    """A best mechanism that is the uniform shuffle at every size keeps the ends and fails the rest."""
    base = {"set": "syn", "lambda_sd": 0.01, "rho_sd": 0.01, "lambda_overall": 1.0, "alpha": 4.0}
    rows = [
        base | {"mechanism": way, "size": size, "group_size": size, "lambda": error, "rho": 0.5}
        for way, error in (("LDP", 0.1), ("uniform", 1.0), ("published", 0.4), ("best", 1.0))
        for size in (1.0, 2.0)
    ]
    table = pl.DataFrame(rows)
    assert all(ends(table, "syn").values())
    assert not any((between(table, "syn") | compared(table, "syn")).values())


def made_up_discharges(n: int) -> str:
    """A base data file as its list of columns describes it: payers follow the region, two in three."""
    rng = np.random.default_rng(3)
    region = rng.integers(0, 6, n)
    payer = np.where(rng.random(n) < 2 / 3, region % 3, rng.integers(0, 5, n))
    rows = [
        f"{100 + r:06d}\t{770 + r}{i % 100:02d}\t{'ABCDE'[p]}\t{1000 + 37 * p + i % 9}.50"
        for i, (r, p) in enumerate(zip(region, payer, strict=True))
    ]
    return "\n".join(["THCIC_ID\tPAT_ZIP\tFIRST_PAYMENT_SRC\tTOTAL_CHARGES", *rows, "000100\t*\tA\t12.0"]) + "\n"


def places(tmp_path: Path, text: str = "hospital,latitude,longitude\n") -> Path:
    file = tmp_path / "places.csv"
    file.write_text(text + "".join(f"{100 + r:06d},{29 + r % 3},{-97 - r // 3}\n" for r in range(6)))
    return file


def test_discharges_need_their_file_and_the_places_of_hospitals_and_say_where_to_apply(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_PUDF", "")
    monkeypatch.setenv("DOVETAIL_HOSPITALS", "")
    header = "THCIC_ID\tPAT_ZIP\tFIRST_PAYMENT_SRC\tTOTAL_CHARGES\n"
    (tmp_path / "few.txt").write_text(f"{header}000100\t*\tA\t1.0\n")
    (tmp_path / "odd.csv").write_text("hospital,lat\n1,2\n")
    few, there = ["--pudf", str(tmp_path / "few.txt")], ["--hospitals", str(places(tmp_path))]
    for name, more, words in (
        ("fig4p", ["--pudf", str(tmp_path / "nothing.txt")], "nothing.txt: no such file. The inpatient"),
        ("fig4p", few, "have no coordinates: name a table hospital,latitude,longitude with --hospitals"),
        ("fig4p", [*few, "--hospitals", str(tmp_path / "odd.csv")], "odd.csv: must be a table hospital,latitude"),
        ("fig4p", [*few, *there], "must name two payers"),
        ("fig8", ["--pudf", "x"], "--pudf goes with fig4p"),
        ("fig4", there, "--hospitals goes with fig4p"),
    ):
        monkeypatch.setenv("DOVETAIL_HOSPITALS", "")
        assert invoke(["study", name, *more, "--out", str(tmp_path)]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert words in told and "Traceback" not in told


@pytest.mark.exhaust
def test_figure_4_runs_on_a_file_of_discharges_and_on_a_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_PUDF", "")
    monkeypatch.setenv("DOVETAIL_HOSPITALS", "")
    (tmp_path / "base.txt").write_text(made_up_discharges(1500))
    named = ["--pudf", str(tmp_path / "base.txt"), "--hospitals", str(places(tmp_path))]
    for more, name in (([], "stand-in"), (named, "pudf")):
        assert invoke(["study", "fig4p", *more, "--out", str(tmp_path / name)]) == 0
        table = pl.read_csv(tmp_path / name / "fig4p.csv", infer_schema_length=None)
        assert set(table["set"]) == {name}
        assert table["mechanism"].to_list() == ["LDP", "uniform", *["published", "exact", "best"] * 2]
        assert all(fig4.verdict(table).values())


def test_friendship_axes_are_the_leading_singular_vectors() -> None:
    """Against a dense decomposition: the axes give the best approximation, and none sums below 0."""
    pairs = np.array([[i, j] for i in range(30) for j in range(i) if (i * j) % 7 == 3 or i == j + 1])
    friends = pl.DataFrame({"one": pairs[:, 0], "other": pairs[:, 1]})
    axes = friendship_axes(friends, 30, axes=3)
    near = np.eye(30)
    near[pairs[:, 0], pairs[:, 1]] = near[pairs[:, 1], pairs[:, 0]] = 1.0
    scale = near.sum(axis=1) ** -0.5
    values = np.linalg.svd(near * scale[:, None] * scale)
    np.testing.assert_allclose(np.linalg.norm(axes, axis=0), values.S[:3], rtol=1e-9)
    best = (values.U[:, :3] * values.S[:3] ** 2) @ values.U[:, :3].T
    np.testing.assert_allclose(axes @ axes.T, best, atol=1e-9)
    assert (axes.sum(axis=0) >= -1e-12).all()
    with pytest.raises(ParameterError, match="`axes`"):
        friendship_axes(friends, 30, axes=30)
    with pytest.raises(DataError, match=r"people 0\.\.19, got 20"):
        friendship_axes(friends, 20, axes=3)
