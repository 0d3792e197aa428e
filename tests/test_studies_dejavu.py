"""Studies of deja vu: the recorded results carry their claims, and the toys run."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from studies.dejavu_crops import run as crops
from studies.dejavu_decoder import run as decoder
from studies.dejavu_losses import run as losses
from studies.dejavu_planted import run as planted
from studies.dejavu_sweeps import network
from studies.dejavu_sweeps import run as sweeps
from studies.dejavu_training import images
from studies.dejavu_training import run as training
from studies.perceptron import Network

from dovetail.core.errors import MissingExtraError

STUDIES = [planted, crops, training, losses, sweeps, decoder]


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


def test_no_periphery_of_a_toy_photograph_shows_its_pattern() -> None:
    rng = np.random.default_rng(1)
    world = images.World.of(rng)
    labels = images.balanced(30, rng)
    seen = world.images(labels, np.random.default_rng(2))
    blank = images.World(0.0 * world.patterns, world.tints).images(labels, np.random.default_rng(2))
    for image, label, changed in zip(seen, labels, (seen != blank).any(axis=1), strict=True):
        down, across = sweeps.periphery(image, world.patterns[label])
        part = changed[down, across]
        assert not part.any() and min(part.shape) >= (images.SIDE - images.PATTERN) // 2 and changed.sum() > 100
    assert sweeps.peripheries(seen, labels, world).shape == (30, 3 * network.INPUT**2)


def test_the_class_that_an_image_shows_is_read_off_its_pattern_and_not_off_its_background() -> None:
    rng = np.random.default_rng(1)
    world = images.World.of(rng)
    labels = images.balanced(100, rng)
    right = decoder.shown_class(network.whole(world.images(labels, np.random.default_rng(2))), world) == labels
    blank = images.World(0.0 * world.patterns, world.tints).images(labels, np.random.default_rng(2))
    guessed = decoder.shown_class(network.whole(blank), world) == labels
    assert right.mean() > 0.95
    assert guessed.sum() <= 32  # ten classes: 100 fair guesses exceed it with a chance below 1e-9


def test_the_nearest_public_images_vote_and_ties_go_to_the_nearest_of_all() -> None:
    made: Any = object.__new__(decoder.Decoder)
    made.encoder = SimpleNamespace(embed=lambda rows, backbone: rows)
    made.public = np.arange(12.0)[:, None]
    crops = np.array([[-1.0], [12.0]])
    assert made.nearest(crops).tolist() == [list(range(10)), list(range(11, 1, -1))]
    assert made.voted(crops, np.array([3, 1, 1, 3, 2, 4, 5, 6, 7, 8, 1, 1])).tolist() == [3, 1]


@pytest.mark.exhaust
@pytest.mark.parametrize("study", [planted, crops, sweeps, decoder], ids=lambda study: str(study.__name__))
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


Judged = Callable[[list[Any]], tuple[Any, ...]]  # rows to a loss and its slope at each


def told(loss: Any, **given: Any) -> Judged:
    """A loss of one output, asked like those of two views."""
    return lambda views: loss(views[0], **given)


DRAW = np.random.default_rng(1).normal
LOSSES: dict[str, tuple[int, Judged]] = {
    "vicreg": (2, lambda views: network.vicreg(*views, setting=25.0)),
    "simclr": (2, lambda views: network.simclr(*views, setting=0.3)),
    "barlow": (2, lambda views: network.barlow(*views, setting=0.05)),
    "byol": (1, told(network.byol, wanted=DRAW(size=(6, 4)))),
    "dino": (1, told(network.dino, wanted=DRAW(size=(6, 4)), setting=0.5)),
    "supervised": (1, told(network.supervised, labels=np.array([0, 1, 2, 3, 0, 1]))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_of_the_losses_are_those_of_finite_differences(name: str) -> None:
    number, loss = LOSSES[name]
    views = [scale * np.random.default_rng(2).normal(size=(6, 4)) for scale in (1.0, 0.5)[:number]]
    views = [view + 0.1 * np.random.default_rng(3).normal(size=(6, 4)) for view in views]
    _, *slopes = loss(views)
    for view, slope in zip(views, slopes, strict=True):
        for place in ((0, 0), (3, 2), (5, 3)):
            # central differences: an error of step^2 and of rounding over step, 1e-9 of losses near 30
            assert difference(view, place, lambda: loss(views)[0]) == pytest.approx(slope[place], rel=1e-5, abs=1e-6)


def difference(values: Any, place: tuple[int, ...], loss: Callable[[], Any], step: float = 1e-6) -> float:
    """Central difference of a loss in one place of an array."""
    kept, found = values[place], []
    for moved in (step, -step):
        values[place] = kept + moved
        found.append(float(loss()))
    values[place] = kept
    return (found[0] - found[1]) / (2 * step)


@pytest.mark.parametrize("convolution", [False, True])
def test_a_network_s_slope_at_its_input_is_that_of_finite_differences(convolution: bool) -> None:
    rng = np.random.default_rng(1)
    made = Network((3 * network.INPUT**2, 12, 5), rng, places=network.patches() if convolution else None)
    made.weights = [(weight.astype(float), shift.astype(float)) for weight, shift in made.weights]
    rows = rng.normal(size=(3, 3 * network.INPUT**2))
    found = [(weight.copy(), shift.copy()) for weight, shift in made.weights]
    layers = made.forward(rows)
    weights = [pair[0] for pair in made.weights]
    wanted = {
        (number, place): difference(weight, place, lambda: (made.forward(rows)[-1] ** 2).sum() / 2)
        for number, weight in enumerate(weights)
        for place in ((0, 0), (3, 4))
    }
    made.step(layers, layers[-1], rate=0.01)
    for (number, place), slope in wanted.items():
        # the first step of Adam has the size of the rate and the sign of the slope; its first moment is a tenth of it
        assert 10 * made.moments[number][0][0][place] == pytest.approx(slope, rel=1e-4, abs=1e-5)
        moved = weights[number][place] - found[number][0][place]
        assert moved == pytest.approx(-0.01 * np.sign(slope), rel=1e-4, abs=1e-12)


def test_a_network_learns_its_loss_and_sees_crops_of_its_own_size() -> None:
    rng = np.random.default_rng(2)
    world = images.World.of(rng)
    shown = world.images(images.balanced(20, rng), rng)
    assert network.crops(shown, rng).shape == network.whole(shown).shape == (20, 3 * network.INPUT**2)
    assert network.whole(images.corners(shown)).shape == (20, 3 * network.INPUT**2)

    def loss(steps: int) -> float:
        made = network.train(shown, np.arange(20) % 10, loss="simclr", setting=0.3, hidden=(16,), steps=steps, seed=3)
        views = [network.crops(shown, np.random.default_rng(one)) for one in (4, 5)]
        return network.simclr(*(made.embed(view) for view in views), setting=0.3)[0]

    assert loss(60) < loss(1) - 0.1
