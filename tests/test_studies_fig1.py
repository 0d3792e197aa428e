"""The study of nested maps runs at toy size and says what its claim says."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from studies.fig1 import run as fig1
from studies.iclr import published, settings
from studies.iclr_claims import plain

from dovetail.core.entropy import simulation
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.shuffle.fitting.groups import Groups


@pytest.mark.exhaust
def test_the_study_holds_at_toy_size_and_leaves_its_table(tmp_path: Path) -> None:
    table = fig1.main(False, tmp_path)
    assert all(fig1.verdict(table).values())
    assert pl.read_csv(tmp_path / "fig1.csv").columns == table.columns
    assert json.loads((tmp_path / "record.json").read_text())["size"] == "toy"
    readme = (Path(fig1.__file__).parent / "README.md").read_text()
    assert readme.startswith("# Claim: ") and all(
        f"`{column}`" in readme for column in table.columns if column != "n"
    )


def test_the_figures_of_the_readme_are_those_of_a_full_run() -> None:
    folder = Path(fig1.__file__).parent
    facts, table = json.loads((folder / "record.json").read_text()), pl.read_csv(folder / "results.csv")
    given = settings(fig1.__file__, full=True)
    assert facts["size"] == "full" and facts["seed"] == given["seed"] and set(table["n"]) == {given["people"]}
    assert all(fig1.verdict(table).values())
    readme = (folder / "README.md").read_text()
    for name, theta, *found in table.drop("mechanism", "n").iter_rows():
        assert f"| {name} | {plain(theta)} | " + " | ".join(f"{value:.3f}" for value in found) + " |" in readme


def test_a_verdict_can_fail() -> None:
    """A mechanism that hides nothing, and a uniform shuffle that hides nothing either."""
    bare = {"attack_8": 1.0, "attack_4": 1.0, "attack_2": 1.0, "lambda": 0.1}
    names = ["LDP", "published, r1", "best, r1", "published, r2", "best, r2", "uniform"]
    held = fig1.verdict(pl.DataFrame([{"shuffler": name, **bare} for name in names]))
    assert list(held.values()) == [True, False, False, False, False, False]


@pytest.mark.parametrize("radius", [0.1, 0.4])
def test_the_printed_mechanism_has_the_printed_dispersion(radius: float) -> None:
    """theta = alpha / (w (w + 1) / 2), and no more."""
    points = nested_crescents(300, rng=simulation(1)).select("x", "y").to_numpy()
    shuffler = published(Groups.within_radius(points, radius), alpha=1.0)
    assert shuffler.theta == pytest.approx(2.0 / (shuffler.width * (shuffler.width + 1)), rel=1e-9)
    assert shuffler.theta <= np.nextafter(2.0 / (shuffler.width * (shuffler.width + 1)), 1.0)
