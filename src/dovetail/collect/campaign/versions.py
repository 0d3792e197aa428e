"""What versions of one campaign must share: both servers refuse the same ones, in the same words."""

from __future__ import annotations

from dovetail.core.errors import ConfigError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.wire.message import inner_bytes

SHARED = (
    *("mechanism", "categories", "groups", "classes", "schedule", "batch", "shuffle", "promise", "dummies", "sent"),
    "suite",
)


def require_same_terms(older: Campaign, newer: Campaign) -> None:
    """A new version changes keys, endpoints and expiry; everything that rounds and promises rest on stays."""
    if older.version == newer.version:
        raise ConfigError(
            f"two files are version {newer.version} of the campaign {newer.id}; serve the one that its owner means."
        )
    if not newer.descends_from(older.owner):
        raise ConfigError(
            f"`owner` differs between the versions {older.version} and {newer.version} of the campaign {newer.id}, "
            "and the older one has signed no hand-over to the newer; `dovetail collect hand-over` makes one."
        )
    for name in SHARED:
        if getattr(older, name) != getattr(newer, name):
            raise ConfigError(
                f"`{name}` differs between the versions {older.version} and {newer.version} of the campaign "
                f"{newer.id}; give the changed campaign another id."
            )
    if inner_bytes(older) != inner_bytes(newer):
        raise ConfigError(
            f"reports of the versions {older.version} and {newer.version} of the campaign {newer.id} have different "
            "lengths and cannot share a batch; give the changed campaign another id."
        )
