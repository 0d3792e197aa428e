"""Every `rng` defaults to the operating system's entropy; a numpy Generator, a seed or anything else is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.account.preservation import preservation, sample_replacements, smallest_alpha_for_members
from dovetail.attack.experiment.reidentify import ForestAttack, Records, reidentify, release_rounds
from dovetail.attack.experiment.run_attack import attack_released, run_attack
from dovetail.attack.experiment.sender_model import EvenBlocks, Regression
from dovetail.attack.experiment.subset_search import SubsetSearch, reidentify_subset
from dovetail.attack.experiment.voter_selection import select_voters
from dovetail.attack.likelihood import Likelihood
from dovetail.attack.majority import MajorityVote
from dovetail.core import entropy
from dovetail.core import stages as registries
from dovetail.core.entropy import Entropy, entropy_or_system, simulation, system_entropy
from dovetail.core.errors import ParameterError
from dovetail.core.stages import NumericRandomizer, Randomizer, Shuffler
from dovetail.datasets.houses import synthetic_loads
from dovetail.datasets.nested_crescents import nested_crescents
from dovetail.estimate.local import DebiasedEstimator, GroupShares
from dovetail.estimate.robust_mean import bootstrap_mean
from dovetail.job.fleet import Fleet, FleetRun
from dovetail.leak.vulnerability import vulnerability
from dovetail.plan.compare import compare_mechanisms
from dovetail.randomize.krr import KRR
from dovetail.randomize.laplace import Laplace
from dovetail.shuffle.fitting.groups import Groups
from dovetail.shuffle.identity import Identity
from dovetail.shuffle.mallows import Mallows
from dovetail.shuffle.noisy_sort import NoisySort
from dovetail.shuffle.planar import PlanarLaplace
from dovetail.shuffle.rase import RASE, Sattolo
from dovetail.shuffle.sampling.mallows import draw_mallows
from dovetail.shuffle.uniform import Uniform
from dovetail.shuffle.within_groups import WithinGroups

Takes = Callable[..., Any]

RANDOMIZERS: list[Randomizer] = [kind.examples()[0] for kind in registries.RANDOMIZERS]
SHUFFLERS: list[Shuffler] = [
    cls.examples()[0]  # type: ignore[attr-defined]
    for cls in (Identity, Uniform, WithinGroups, Mallows, NoisySort, PlanarLaplace, RASE, Sattolo)
]
KRR2 = KRR(k=2, epsilon=1.0)
VALUES = np.array([0, 1] * 4)
BLOCKS = [0, 0, 0, 0, 1, 1, 1, 1]
GROUPS = Groups.from_labels(BLOCKS)
PLACES = np.arange(8.0)
NEIGHBOURS = np.arange(8)[:, None]
LAPLACE = Laplace(lower=0.0, upper=1.0, epsilon=1.0)


def rounds() -> FleetRun:
    """A fleet of two devices before its first round."""
    return FleetRun(Fleet(("a", "b"), LAPLACE, RASE.fit([[0, 1]]), 10.0))


def records() -> Records:
    """What three devices sent in eight rounds."""
    return Records.of_rounds(np.arange(24.0).reshape(8, 3))


ENTRIES: dict[str, Takes] = {
    **{
        f"{type(r).__name__}.randomize": lambda r=r, **o: r.randomize(
            [r.upper] if isinstance(r, NumericRandomizer) else [0, 1], **o
        )
        for r in RANDOMIZERS
    },
    **{f"{type(s).__name__}.permutation": lambda s=s, **o: s.permutation(**o) for s in SHUFFLERS},
    **{f"{type(s).__name__}.shuffle": lambda s=s, **o: s.shuffle(np.zeros(s.n), **o) for s in SHUFFLERS},
    "mallows": lambda **o: draw_mallows(5, 0.5, **o),
    "GroupShares.shares": lambda **o: GroupShares(GROUPS, k=2).shares(VALUES, **o),
    "DebiasedEstimator.shares": lambda **o: DebiasedEstimator(GroupShares(GROUPS, k=2), KRR2.channel()).shares(
        VALUES, **o
    ),
    "bootstrap_mean": lambda **o: bootstrap_mean(LAPLACE, LAPLACE.randomize([0.5] * 20), resamples=5, **o),
    "nested_crescents": lambda **o: nested_crescents(8, **o),
    "synthetic_loads": lambda **o: synthetic_loads(2, 3, **o),
    "replaced": lambda **o: sample_replacements(Uniform(8), [0, 1], draws=2, **o),
    "preservation": lambda **o: preservation(Uniform(8), [0, 1], eta=0.5, draws=2, **o),
    "least_alpha_of_members": lambda **o: smallest_alpha_for_members(
        lambda alpha: Uniform(8), range(8), eta=0.5, delta=0.5, draws=50, **o
    ),
    "MajorityVote.guess": lambda **o: MajorityVote(KRR2, np.arange(8), NEIGHBOURS).guess(VALUES, **o),
    "Likelihood.guess": lambda **o: Likelihood(
        KRR2,
        np.array([0, 5]),
        EvenBlocks(np.arange(8) % 4, np.array([0, 5])),
        np.eye(2)[BLOCKS],
        Regression.on(np.eye(2)[BLOCKS]),
    ).guess(VALUES, **o),
    "select_voters": lambda **o: select_voters(
        np.arange(8), within=(PLACES[:, None], 2.0), similar=None, votes=2, **o
    ),
    "SubsetSearch.learn": lambda **o: SubsetSearch.learn(KRR2, VALUES, Uniform(8), subset=[0, 1], draws=9, **o),
    "reidentify_subset": lambda **o: reidentify_subset(
        SubsetSearch.learn(KRR2, VALUES, Uniform(8), subset=[0, 1], draws=9), VALUES, Uniform(8), trials=2, **o
    ),
    "run_attack": lambda **o: run_attack(
        MajorityVote(KRR2, np.arange(8), NEIGHBOURS), KRR2, VALUES, Uniform(8), shuffles=2, randomizations=1, **o
    ),
    "attack_released": lambda **o: attack_released(
        MajorityVote(KRR2, np.arange(8), NEIGHBOURS), VALUES, [VALUES], **o
    ),
    "release_rounds": lambda **o: release_rounds(np.zeros((2, 8)), Uniform(8), **o),
    "ForestAttack.learn": lambda **o: ForestAttack.learn(records(), trees=1, **o),
    "reidentify": lambda **o: reidentify(
        ForestAttack.learn(records(), trees=1), lambda rng: records(), trials=2, permutations=2, **o
    ),
    "FleetRun.submit": lambda **o: rounds().submit(1, {"a": 0.5, "b": 0.25}, **o),
    "FleetRun.submit_table": lambda **o: rounds().submit_table(
        pl.DataFrame({"device": ["a", "b"], "time": [1, 1], "value": [0.5, 0.25]}), **o
    ),
    "vulnerability": lambda **o: vulnerability(KRR2.channel(), n=5, **o),
    "compare_mechanisms": lambda **o: compare_mechanisms(n=1000, k=2, error=0.05, **o),
}


EXACT = ("vulnerability", "compare_mechanisms")  # they draw only where an exact sum is out of reach


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    "wrong", [np.random.default_rng(1), np.random.RandomState(1), 7], ids=lambda it: str(type(it))
)
def test_a_numpy_generator_and_a_seed_are_refused_with_the_way_out(entry: str, wrong: object) -> None:
    with pytest.raises(
        ParameterError, match=r"`rng` must be dovetail.system_entropy\(\) or.*use dt.simulation\(seed\)"
    ):
        ENTRIES[entry](rng=wrong)


@pytest.mark.parametrize("entry", ENTRIES)
def test_randomness_that_is_not_named_is_the_operating_systems(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Entropy] = []

    def spied() -> Entropy:
        asked.append(system_entropy())
        return asked[-1]

    monkeypatch.setattr(entropy, "system_entropy", spied)
    ENTRIES[entry]()
    assert bool(asked) != (entry in EXACT)


def test_the_default_is_the_operating_systems_entropy() -> None:
    assert entropy_or_system(None).provenance == system_entropy().provenance == "device"
    given: Entropy = simulation(3)
    assert entropy_or_system(given) is given


def test_what_is_made_without_randomness_of_ones_own_is_not_marked_as_simulated() -> None:
    fleet, played = rounds(), rounds()
    fleet.submit(1, {"a": 0.5, "b": 0.25})
    played.submit(1, {"a": 0.5, "b": 0.25}, rng=simulation(1))
    assert not fleet.guarantee.caveats and played.guarantee.caveats


def test_draws_without_randomness_of_ones_own_differ() -> None:
    assert not np.array_equal(Uniform(1000).permutation(), Uniform(1000).permutation())
    assert not np.array_equal(
        dt.KRR(k=100, epsilon=0.1).randomize([0] * 1000), KRR(k=100, epsilon=0.1).randomize([0] * 1000)
    )
