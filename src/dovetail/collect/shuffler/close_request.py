"""What the owner of a campaign may ask of the shuffler: to close a round of a manual schedule, to drop a lost one."""

from __future__ import annotations

from dovetail.collect.http.problems import Refusal
from dovetail_protocol.campaign import Campaign

_DOMAIN = b"dovetail close v1\0"
_DROP = b"dovetail drop v1\0"


def close_statement(digest: bytes, number: int) -> bytes:
    """What the owner signs to close round `number` of the campaign with this digest."""
    return _DOMAIN + digest + number.to_bytes(4, "big")


def check_close(campaign: Campaign, number: int, signature: bytes) -> None:
    """Refuse unless the owner has signed that this round closes, and rounds close by hand."""
    if campaign.schedule.period is not None:
        raise Refusal("round", "the rounds of this campaign close by the clock.")
    if not 1 <= number <= campaign.schedule.count:
        raise Refusal("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
    if not campaign.owner.verifies(signature, close_statement(campaign.digest, number)):
        raise Refusal(
            "signature",
            f"the owner has not signed that this round closes in version {campaign.version} of {campaign.id}.",
        )


def drop_statement(digest: bytes, number: int) -> bytes:
    """What the owner signs to drop round `number`; repeated it changes nothing, for a round is dropped for ever."""
    return _DROP + digest + number.to_bytes(4, "big")


def check_drop(campaign: Campaign, number: int, signature: bytes) -> None:
    """Refuse unless the owner has signed that this round is dropped."""
    if not 1 <= number <= campaign.schedule.count:
        raise Refusal("round", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
    if not campaign.owner.verifies(signature, drop_statement(campaign.digest, number)):
        raise Refusal(
            "signature",
            f"the owner has not signed that this round is dropped in version {campaign.version} of {campaign.id}.",
        )
