"""Rounds in dp-accounting: safe, close, composable with its own mechanisms, and only for stated neighbours."""

import sys

import numpy as np
import pytest

from dovetail.account.compose import compose, composed_delta
from dovetail.account.renyi import renyi_curve, to_dp_accounting
from dovetail.account.rounds import ShuffledRound
from dovetail.core.errors import MissingExtraError, ParameterError, UnsupportedError

accounting = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
REPLACE = accounting.NeighboringRelation.REPLACE_ONE
CASES = [(1.0, 1_000, 1), (1.0, 1_000, 100), (1.0, 10_000, 1_000), (0.2, 10**6, 50), (4.0, 2_000, 20)]


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon0", "n", "T"), CASES)
def test_both_libraries_compose_rounds_to_the_same_epsilon(epsilon0: float, n: int, T: int) -> None:
    part = ShuffledRound(epsilon0, n, kind="clones")
    interval = part.pair.gaussian_scale / 100
    theirs = to_dp_accounting(part, interval=interval, neighboring_relation=REPLACE).self_compose(T)
    ours = compose([ShuffledRound(epsilon0, n, times=T, kind="clones")], delta=1e-6)  # what is exported
    assert ours.epsilon is not None and ours.lower is not None
    epsilon = theirs.get_epsilon_for_delta(1e-6)
    assert epsilon >= ours.lower  # theirs is pessimistic: not below what is certified from below
    assert epsilon == pytest.approx(ours.epsilon, rel=5e-4)
    assert theirs.get_delta_for_epsilon(ours.lower) >= 1e-6 * (1 - 1e-9)


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon0", "n", "T"), CASES)
def test_what_is_promised_of_rounds_is_at_most_what_their_export_composes_to(epsilon0: float, n: int, T: int) -> None:
    """Stronger clones are exported; of any randomizer everybody hides more, where that is proved."""
    part = ShuffledRound(epsilon0, n)
    theirs = to_dp_accounting(part, interval=part.pair.gaussian_scale / 100, neighboring_relation=REPLACE)
    ours = compose(T, epsilon0=epsilon0, n=n, delta=1e-6)
    assert ours.epsilon is not None and ours.epsilon <= theirs.self_compose(T).get_epsilon_for_delta(1e-6) * 1.0005


@pytest.mark.exhaust
@pytest.mark.parametrize(("epsilon0", "n", "T"), CASES)
def test_the_exported_delta_is_not_below_the_certified_lower_end(epsilon0: float, n: int, T: int) -> None:
    part = ShuffledRound(epsilon0, n, kind="clones")
    interval = part.pair.gaussian_scale / 30
    theirs = to_dp_accounting(
        ShuffledRound(epsilon0, n, times=T, kind="clones"), interval=interval, neighboring_relation=REPLACE
    )
    for z in (1.0, 3.0):
        epsilon = z * part.pair.gaussian_scale * np.sqrt(T)
        ends = composed_delta([ShuffledRound(epsilon0, n, times=T, kind="clones")], epsilon=epsilon)
        assert ends.lower <= theirs.get_delta_for_epsilon(epsilon) <= ends.upper * 1.02


@pytest.mark.exhaust
def test_a_round_composes_with_a_gaussian_step() -> None:
    rounds = to_dp_accounting(ShuffledRound(1.0, 1_000, times=10), interval=1e-3, neighboring_relation=REPLACE)
    gaussian = pld.from_gaussian_mechanism(4.0, value_discretization_interval=1e-3, neighboring_relation=REPLACE)
    both, ours = rounds.compose(gaussian).get_epsilon_for_delta(1e-6), compose(10, epsilon0=1.0, n=1_000, delta=1e-6)
    alone = gaussian.get_epsilon_for_delta(1e-6)
    assert ours.epsilon is not None
    assert max(alone, ours.epsilon) < both < alone + ours.epsilon
    # two Gaussian-like losses: their squares add, about
    assert both == pytest.approx(np.hypot(alone, ours.epsilon), rel=0.1)


@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_SPECIAL"])
def test_other_neighbours_are_refused(relation: str) -> None:
    wanted = accounting.NeighboringRelation[relation]
    with pytest.raises(UnsupportedError, match="REPLACE_ONE"):
        to_dp_accounting(ShuffledRound(1.0, 100), interval=1e-2, neighboring_relation=wanted)


def test_approximate_rounds_and_impossible_grids_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="Approximate"):
        to_dp_accounting(ShuffledRound(1.0, 100, delta0=1e-12), interval=1e-2, neighboring_relation=REPLACE)
    with pytest.raises(UnsupportedError, match="grid points"):
        to_dp_accounting(ShuffledRound(1.0, 100), interval=1e-12, neighboring_relation=REPLACE)
    with pytest.raises(ParameterError, match="interval"):
        to_dp_accounting(ShuffledRound(1.0, 100), interval=0.0, neighboring_relation=REPLACE)


def test_without_the_package_the_pip_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[interop\]"):
        to_dp_accounting(ShuffledRound(1.0, 100), interval=1e-2, neighboring_relation=REPLACE)


@pytest.mark.exhaust
def test_the_renyi_curve_converts_there_as_here() -> None:
    curve = renyi_curve(ShuffledRound(1.0, 10_000, times=1_000, kind="clones"), orders=np.geomspace(2.0, 200.0, 60))
    theirs, _ = rdp.compute_epsilon(curve.orders, curve.divergences, 1e-6)
    ours = compose([ShuffledRound(1.0, 10_000, times=1_000, kind="clones")], delta=1e-6).epsilon
    assert ours is not None and ours < theirs < 1.2 * ours
    from dovetail.account.renyi import renyi_epsilon

    assert theirs == pytest.approx(renyi_epsilon(curve.orders, curve.divergences, delta=1e-6), rel=1e-12)


def test_all_rounds_are_handed_over_not_the_first_alone() -> None:
    accounting = pytest.importorskip("dp_accounting")
    relation = accounting.NeighboringRelation.REPLACE_ONE
    one, three = (
        to_dp_accounting(ShuffledRound(1.0, 1000, times=times), interval=0.01, neighboring_relation=relation)
        for times in (1, 3)
    )
    alone, together = one.get_epsilon_for_delta(1e-6), three.get_epsilon_for_delta(1e-6)
    assert together == one.self_compose(3).get_epsilon_for_delta(1e-6) > 1.5 * alone
