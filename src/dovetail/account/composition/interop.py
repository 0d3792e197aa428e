"""Shuffled rounds for other accountants: privacy loss distributions and Renyi curves for dp-accounting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from dovetail.account.clones.stronger_clones import ClonePair
from dovetail.account.composition.privacy_loss import pessimistic_pld
from dovetail.account.composition.renyi import check_orders, renyi_divergence
from dovetail.account.composition.shuffled_round import ShuffledRound
from dovetail.core.checks import instance, positive
from dovetail.core.errors import UnsupportedError
from dovetail.core.extras import require
from dovetail.core.numeric.special import Reals

CUT = 1e-18  # mass per round that goes to infinity
MOST_POINTS = 10**7


def to_dp_accounting(part: ShuffledRound, *, interval: float, neighboring_relation: Any) -> Any:
    r"""The privacy loss distribution of a round, pessimistic, as an object of the package dp-accounting.

    To compose with Gaussian or subsampled steps: `.compose(other)`, `.self_compose(times)` and
    `.get_epsilon_for_delta(delta)` are dp-accounting's. For shuffled rounds alone use `compose`, which certifies its
    answer.

    A shuffled round is accounted for people whose *value is replaced*; n is public. Build every other step for
    `NeighboringRelation.REPLACE_ONE` too: for a Gaussian sum
    `from_gaussian_mechanism(sd, sensitivity, neighboring_relation=NeighboringRelation.REPLACE_ONE)`, where
    `sensitivity` is what dp-accounting asks for under that relation. A distribution does not remember its relation,
    and dp-accounting composes different ones without a word; so it must be stated here.

    Parameters
    ----------
    part : Round
        With delta0 = 0. All its `times` are composed.
    interval : float, above 0, nats
        Grid of the losses, the same for everything that is composed; a hundredth of `part.pair.gaussian_scale` loses
        next to nothing. What is lost falls with its square.
    neighboring_relation : dp_accounting.NeighboringRelation
        Must be REPLACE_ONE.

    Returns
    -------
    distribution : dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Its delta is never below the pair's, up to dp-accounting's own rounding (about 1e-15 a step).

    Raises
    ------
    UnsupportedError
        For another neighbouring relation or an approximate randomizer.
    MissingExtraError
        Without dp-accounting: `pip install 'dovetail-privacy[interop]'`.

    Examples
    --------
    >>> from dp_accounting import NeighboringRelation
    >>> relation = NeighboringRelation.REPLACE_ONE
    >>> one = to_dp_accounting(ShuffledRound(1.0, 10_000), interval=1e-3, neighboring_relation=relation)
    >>> one.self_compose(10).get_epsilon_for_delta(1e-6) < 1.0
    True

    Source
    ------
    `pessimistic_pld`, and dp-accounting 0.6, `pld_pmf.DensePLDPmf`.
    """
    accounting = require("dp_accounting", extra="interop")
    if neighboring_relation is not accounting.NeighboringRelation.REPLACE_ONE:
        raise UnsupportedError(
            f"A shuffled round is proved for REPLACE_ONE neighbours, got {neighboring_relation!r}: adding or "
            "removing a person changes n, which is public. State every step for REPLACE_ONE."
        )
    step, worst = positive("interval", interval), min(part.epsilon0, 40.0 * part.pair.gaussian_scale)
    if worst / step > MOST_POINTS:
        raise UnsupportedError(f"`interval` {step:g} needs more than {MOST_POINTS:,} grid points for this round.")
    pld = pessimistic_pld(_pure(part), step=step, cut=CUT)
    pmf = require("dp_accounting.pld.pld_pmf", extra="interop").DensePLDPmf(
        step, -(pld.masses.size // 2), pld.masses * (1.0 + pld.error), pld.infinity, True
    )
    made = require("dp_accounting.pld.privacy_loss_distribution", extra="interop").PrivacyLossDistribution(pmf)
    return made if part.times == 1 else made.self_compose(part.times)


@dataclass(frozen=True, eq=False)
class RenyiCurve:
    """Orders and Renyi divergences, for accountants that add them.

    Parameters
    ----------
    orders, divergences : float arrays (orders,)
        Upper bounds, nats.
    neighbours : str
    """

    orders: Reals
    divergences: Reals
    neighbours: str = "replace one person's value"


def renyi_curve(part: ShuffledRound, *, orders: ArrayLike) -> RenyiCurve:
    """Renyi divergences of all `times` of a round, to be added to other steps' for the same neighbours.

    With dp-accounting: `compute_epsilon(curve.orders, curve.divergences + others, delta)` of
    `dp_accounting.rdp.rdp_privacy_accountant`, where `others` come from an accountant for REPLACE_ONE.

    Raises
    ------
    ParameterError
        For orders that are not above 1.

    Examples
    --------
    >>> curve = renyi_curve(ShuffledRound(1.0, 10_000, times=100), orders=[8.0, 32.0])
    >>> curve.divergences.round(4).tolist()
    [0.0636, 0.2542]
    """
    alphas, part = check_orders(orders), instance("part", part, ShuffledRound)
    return RenyiCurve(alphas, part.times * renyi_divergence(_pure(part), alphas))


def _pure(part: ShuffledRound) -> ClonePair:
    if part.delta0 > 0.0:
        raise UnsupportedError("Approximate randomizers have no pair to export; use `compose` for them.")
    return part.pair
