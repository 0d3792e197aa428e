"""Independent draws are rejected at the level, in two thousand simulations of the whole test."""

import numpy as np
import pytest
from tests.statistics import expect_caught, expect_share

from dovetail.memorize.copying.cells import compare_cells
from dovetail.memorize.copying.data_copying import CopyingTest
from dovetail.memorize.copying.rank_test import rank_test

RUNS = 2000


def simulated(runs: int) -> dict[str, np.ndarray]:
    """Whether each test rejects at level .05, for independent draws of one Gaussian."""
    found: dict[str, list[bool]] = {}
    for seed in range(runs):
        draw = np.random.default_rng(seed).standard_normal
        prepared = CopyingTest.prepare(draw((400, 2)), draw((200, 2)), cells=4, seed=seed)
        result = prepared.test(draw((200, 2)), baselines=False)
        for name, p in (
            ("global", result.overall.p_copying),
            ("under", result.overall.p_underfitting),
            ("standardized", 0.0 if (result.cells.c_t_standardized or 0.0) < -1.6449 else 1.0),
            ("cells", min((cell.p_holm for cell in result.cells.cells), default=1.0)),
            ("tail", result.tail.p),
            ("ratio", result.ratio.p),
            ("paired", result.paired.p),
            ("membership", result.membership.p),
            ("verdict", 1.0 if result.verdict == "nothing found" else 0.0),
        ):
            found.setdefault(name, []).append(p <= 0.05)
    return {name: np.array(fired) for name, fired in found.items()}


def expect_calibrated(fired: dict[str, np.ndarray], *, seen: float) -> None:
    """The two z tests reject a share of .04 to .06, the others at most .05, the verdict at most .1."""
    for name in ("global", "under", "standardized", "membership"):
        expect_share(fired[name], 0.04, 0.06, [seen])
    for name in ("cells", "tail", "ratio", "paired"):
        expect_share(fired[name], 0.0, 0.055, [seen])
    expect_share(fired["verdict"], 0.0, 0.1, [2 * seen])


@pytest.mark.exhaust
def test_independent_distances_are_seldom_rejected() -> None:
    fired = []
    for seed in range(RUNS):
        draw = np.random.default_rng(seed).random
        fired.append(rank_test(draw(300), draw(200)).p_copying <= 0.05)
    expect_share(fired, 0.04, 0.06, [0.11])


@pytest.mark.exhaust
def test_two_thousand_simulations_of_independent_draws_reject_one_in_twenty() -> None:
    fired = simulated(RUNS)
    expect_calibrated(fired, seen=0.11)
    assert 0.04 <= fired["global"].mean() <= 0.06 and 0.04 <= fired["standardized"].mean() <= 0.06


def test_a_statistic_of_the_wrong_scale_would_be_caught() -> None:
    # C_T is no z-score: taken for one, it never rejects
    never = np.zeros(RUNS, dtype=bool)
    expect_caught(expect_share, never, 0.04, 0.06, [0.12])


@pytest.mark.exhaust
def test_holm_over_cells_keeps_the_level() -> None:
    fired = []
    for seed in range(500):
        draw = np.random.default_rng(seed).random
        labels = np.repeat(np.arange(8), 75)
        found = compare_cells((draw(600), labels), (draw(600), labels))
        fired.append(min(cell.p_holm for cell in found.cells) <= 0.05)
    expect_share(fired, 0.0, 0.055, [0.17])
