"""The loss of one noise covariance against one secret, for every adversary on a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.bracket import Bracket
from dovetail.core.errors import UnsupportedError
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.loss.adversaries import MOST_LOST, Adversary, limit_of_mean, sightings
from dovetail.trace.loss.conditional import condition
from dovetail.trace.loss.information import Information, information, posterior_width
from dovetail.trace.loss.moves import worst_move

SIGHTING = "one sighting"


@dataclass(frozen=True)
class AdversaryLoss:
    """What one adversary gets, for locations of prior variance 1 and moves of at most 1.

    Parameters
    ----------
    name : str
    loss : Bracket
        Largest eigenvalue of J.
    move : Bracket
        The worst move of all secret locations together.
    width : float or None
        Twice the smallest posterior standard deviation.
    note : str
        For a sighting: the point that was seen.
    """

    name: str
    loss: Bracket
    move: Bracket
    width: float | None
    note: str = ""


def losses(known: Sequence[Adversary], secret: Sequence[int], noise: Floats) -> list[AdversaryLoss]:
    """Loss of a secret for each adversary, the kernel itself first, the worst single sighting last."""
    found = []
    for one in known:
        seen = condition(one.prior, secret)
        told = information(seen, noise)
        if one.unknown_mean:
            told = Information(told.matrix + limit_of_mean(known[0].prior, secret), told.error)
        width = posterior_width(told.posterior(seen.variance))
        found.append(AdversaryLoss(one.name, told.largest, worst_move([told]), width))
    return [*found, _worst_sighting(known[0].prior, secret, noise)]


def _worst_sighting(prior: Floats, secret: Sequence[int], noise: Floats) -> AdversaryLoss:
    seen = condition(prior, secret)
    values = sightings(seen, prior, noise)
    if len(values) == len(seen.secret):
        raise UnsupportedError("The secret is the whole trace: there is no other time to be seen at.")
    place = int(np.argmax(values))
    worst = float(values[place]) * (1.0 + 1e-6)
    # S maxeig J bounds every move; a finer bound is not worth a search for each time
    largest = Bracket(0.0 if np.isinf(worst) else float(values[place]) * (1.0 - 2.0 * MOST_LOST), worst)
    return AdversaryLoss(SIGHTING, largest, Bracket(largest.lower, worst * len(seen.secret)), None, f"point {place}")
