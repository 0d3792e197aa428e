"""The analyst's randomizer takes its parameters from the device's mechanism: one check, one set of thresholds."""

from dataclasses import fields
from typing import Any

from dovetail_protocol.mechanism import Mechanism

JUST_BELOW = 1.0 - 1e-12  # of an epsilon at which a mechanism changes its shape


def adopt(randomizer: Any, mechanism: Mechanism) -> None:
    """Give a frozen randomizer the checked parameters of `mechanism`, which has the same ones."""
    for field in fields(randomizer):
        object.__setattr__(randomizer, field.name, getattr(mechanism, field.name))
