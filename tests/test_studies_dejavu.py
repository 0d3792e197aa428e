"""Studies of deja vu: the recorded results carry their claims, and the toys run."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.dejavu_crops import run as crops
from studies.dejavu_losses import run as losses
from studies.dejavu_planted import run as planted
from studies.dejavu_training import images
from studies.dejavu_training import run as training

from dovetail.core.errors import MissingExtraError

STUDIES = [planted, crops, training, losses]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: str(study.__name__))
def test_the_recorded_results_carry_the_claim(study: Any) -> None:
    home = Path(study.__file__).parent
    assert (home / "README.md").read_text().startswith("# Claim: ")
    verdict = study.verdict(pl.read_csv(home / "results.csv"))
    assert len(verdict) >= 3 and all(verdict.values()), verdict


def test_the_readme_states_the_endpoint_that_was_recorded() -> None:
    home = Path(training.__file__).parent
    only_target, only_reference = training.endpoint(pl.read_csv(home / "results.csv"))
    assert f"{only_target} against {only_reference}" in (home / "README.md").read_text()


def test_no_corner_of_a_toy_photograph_shows_its_pattern() -> None:
    rng = np.random.default_rng(1)
    world = images.World.of(rng)
    labels = images.balanced(200, rng)
    one, two = (world.images(labels, np.random.default_rng(2)) for _ in range(2))
    assert (one == two).all() and one.shape == (200, 3, images.SIDE, images.SIDE)
    blank = images.World(0.0 * world.patterns, world.tints).images(labels, np.random.default_rng(2))
    changed = (one != blank).any(axis=(0, 1))
    low = images.SIDE - images.CORNER
    assert not changed[low:, : images.CORNER].any() and changed.sum() > 800
    assert images.corners(one).shape == (200, 3, images.CORNER, images.CORNER)
    assert images.CORNER >= 0.3 * images.SIDE


@pytest.mark.exhaust
@pytest.mark.parametrize("study", [planted, crops], ids=lambda study: str(study.__name__))
def test_the_toys_run(study: Any, tmp_path: Path) -> None:
    assert all(study.verdict(study.main(False, tmp_path)).values())
    assert (tmp_path / "record.json").exists()


@pytest.mark.exhaust
def test_the_training_runs_as_a_toy_or_says_what_it_needs(tmp_path: Path) -> None:
    if find_spec("torch") is None:
        with pytest.raises(MissingExtraError, match="pip install torch"):
            training.main(False, tmp_path)
        return
    assert all(training.verdict(training.main(False, tmp_path)).values())
    assert (tmp_path / "dejavu_training_examples.png").exists()
