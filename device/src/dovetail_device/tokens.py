"""Tokens of a device, one a round: stored before it asks, verified before it is kept, and never another one.

::

    (nothing) -- draw --> asked -- the issuer's signature --> held -- its report is settled --> spent
                            |
                            +-- the issuer says no, or its key could tell this device from others, --> refused
                                or the campaign names another key than when it was asked

Whatever is killed in between asks with the same bytes again, and gets the same answer: no round has two tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from dovetail_device.ledger import HeldToken
from dovetail_device.outbox import Outbox
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.errors import ConfigError, DataError, DovetailError
from dovetail_protocol.keys import SigningKey
from dovetail_protocol.tokens import AUTHENTICATOR, PendingToken, apply_for

FINAL: dict[str, str] = {
    "issued": "the issuer has given its token to another request: this device has lost its memory, or somebody else "
    "has used its right",
    "forged": "the issuer has signed with another key than the campaign names, or this key hides nothing: it "
    "could tell this device from others; nothing is sent",
    "changed": "the campaign has another issuer or key for this round than when this device asked, and a second "
    "request could be linked",
    "late": "the round is over",
}
"""Why a round will never have a token."""

NOT_NOW: dict[str, str] = {
    "unentitled": "the issuer does not know this device, its code or its account, or does not know it yet",
    "too_early": "the issuer has no tokens of this round on sale",
    "not_found": "the issuer does not know this campaign",
    "malformed": "the issuer cannot read what this device asks",
}
"""Why it has none now."""


class TokenRefused(DovetailError):
    """The issuer gives no token for a round, so that no report is drawn for it; `reason` says which refusal it is."""

    def __init__(self, campaign: str, round: int, reason: str) -> None:
        super().__init__(
            f"no token for round {round} of the campaign {campaign}: {(FINAL | NOT_NOW)[reason]}; nothing was drawn."
        )
        self.reason = reason


class Issuer(Protocol):
    """A way to the issuer; faults are answers, never exceptions."""

    def ask(self, url: str, application: bytes) -> bytes | str:
        """The blind signature of what is asked at this address, or the kind of the refusal.

        "unavailable" if nobody answers as an issuer.
        """


@dataclass(frozen=True)
class TokenReceipt:
    """The state of the token of one round: held, or the reason why it is not."""

    campaign: str
    round: int
    state: Literal["held", "spent", "refused", "waiting"]
    reason: str = ""

    def __str__(self) -> str:
        why = (FINAL | NOT_NOW | {"unavailable": "the issuer does not answer"}).get(self.reason, "")
        return f"{self.campaign}, token of round {self.round}: {self.state}" + (f" ({why})." if why else ".")


def fetch_token(
    outbox: Outbox, campaign: Campaign, round: int, *, issuer: Issuer, by: SigningKey | bytes
) -> tuple[HeldToken, str]:
    """The token of a round as it stands after asking for it, and the kind of the refusal, or empty.

    by : the device's own key where it is on the issuer's roster; else an invitation's code or an account's voucher.
    """
    rule = campaign.tokens
    if rule is None:
        raise ConfigError(f"the campaign {campaign.id} asks for no tokens.")
    held = outbox.token(campaign, round, lambda: PendingToken.draw(rule, round))
    if held.state != "asked":
        return held, held.reason
    pending = held.pending()
    try:
        request = pending.request(rule, campaign.id, round)
    except DataError:
        return outbox.refuse_token(campaign.id, round, "forged"), "forged"
    answer = issuer.ask(rule.url, apply_for(campaign.id, round, request, by, key=rule.key(round)))
    if isinstance(answer, str):
        if answer in FINAL:
            return outbox.refuse_token(campaign.id, round, answer), answer
        return held, answer if answer in NOT_NOW else "unavailable"
    if len(answer) != AUTHENTICATOR:
        return held, "unavailable"  # a captive portal
    token = pending.finish(answer, rule, campaign.id, round)
    if token is None:
        return outbox.refuse_token(campaign.id, round, "forged"), "forged"
    return outbox.hold_token(campaign.id, round, token), ""
