"""The dummies of a campaign whose shuffler is trusted with the noise: both servers read them off the signed file."""

from __future__ import annotations

from typing import Any

from dovetail.core.errors import ConfigError, ParameterError
from dovetail.shuffle.dummies.dummies import Dummies
from dovetail_protocol.campaign import Campaign

MOST = 1_000_000  # dummies of a batch on average; each is sealed by itself
Law = tuple[int, int, int]


def added_dummies(campaign: Campaign) -> Dummies | None:
    """What the shuffler adds to each batch; None where it adds nothing.

    Raises
    ------
    ConfigError
        Where this program would add others than the file says: it is of another version than who drafted it.
    """
    rule = campaign.dummies
    if rule is None:
        return None
    mechanism: Any = campaign.mechanism
    try:
        dummies = Dummies(mechanism.k, rule.epsilon, rule.delta)
    except ParameterError as error:
        raise ConfigError(f"in [dummies]: {error}") from None
    if dummies.reach != rule.reach:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {rule.reach:,} dummies of each answer on average, and this version "
            f"of dovetail would add {dummies.reach:,}: it was drafted for another version."
        )
    if dummies.k * dummies.reach > MOST:
        raise ConfigError(
            f"the campaign {campaign.id} asks for {dummies.k * dummies.reach:,} dummies in each batch, more than "
            f"{MOST:,}: join answers."
        )
    return dummies


def law_of(dummies: Dummies) -> Law:
    """What a batch states of its dummies: numerator, denominator and reach of their law."""
    noise = dummies.noise
    return noise.numerator, noise.denominator, noise.reach
