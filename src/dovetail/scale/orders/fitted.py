"""Which fitted shufflers are drawn in tasks. Tasks themselves import the one that they draw, and start the faster."""

from __future__ import annotations

from dovetail.scale.orders.gathered import MallowsPlaces, PlanarPlaces
from dovetail.scale.orders.noisy_places import NoisyPlaces

FITTED = (NoisyPlaces, MallowsPlaces, PlanarPlaces)  # of shufflers that are fitted to public labels


def arrangement_of(shuffler: str) -> type[NoisyPlaces | MallowsPlaces | PlanarPlaces] | None:
    """What draws a fitted shuffler in tasks; None for others.

    >>> arrangement_of("uniform") is None
    True
    """
    return next((kind for kind in FITTED if kind.shuffler == shuffler), None)
