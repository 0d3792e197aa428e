"""The issuer at work: who asks, which rounds are on sale, one token a person and round, and only then a signature."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from dovetail.collect.campaign.issued_counts import IssuedCounts
from dovetail.collect.campaign.roster import LiveRoster, stamp
from dovetail.collect.campaign.terms import require_same_terms
from dovetail.collect.http import Refusal
from dovetail.collect.issuer.signing import BlindSigner
from dovetail.collect.store.issuer_store import IssuerStore
from dovetail.collect.survey.invitations import NAME, Invitations
from dovetail.core.errors import ConfigError, DataError
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.keys import SigningKey, VerifyingKey, text
from dovetail_protocol.tokens import INVITATION, Application, TokenKey, read_application

AHEAD = 3  # rounds after the one that runs


@dataclass(frozen=True)
class Entitlement:
    """Who gets tokens; a store goes on with one kind, for people have other names in another."""

    kind: Literal["roster", "invitations", "accounts"]
    admits: Callable[[Application, TokenKey], bool]
    fault: Callable[[], str] = str  # what is wrong with its file, so that an older state counts; or empty


def of_roster(roster: LiveRoster) -> Entitlement:
    """Devices of a roster that have signed their request; a revocation counts with the next one."""

    def entitled(asked: Application, key: TokenKey) -> bool:
        if not asked.is_signed(key):
            return False
        device, now = VerifyingKey(asked.holder), roster.current()
        return now.slot(device) is not None and not now.is_revoked(device)

    return Entitlement("roster", entitled, lambda: roster.fault)


def of_invitations(file: Path) -> Entitlement:
    """People who have the code of an invitation; the file has their hashes alone, and is read when it changes."""
    path = file / NAME
    held, fault = (stamp(path), Invitations.load(file)), ""

    def entitled(asked: Application, _: TokenKey) -> bool:
        nonlocal held, fault
        if asked.kind != INVITATION:
            return False
        seen, known = held
        if (now := stamp(path)) != seen:
            try:
                if now is None:
                    raise ConfigError(f"{path} is gone.")
                known, fault = Invitations.load(file), ""
            except ConfigError as error:
                fault = str(error)  # the codes that were read before count
            held = now, known
        return known.knows(text(asked.holder))

    return Entitlement("invitations", entitled, lambda: fault)


def of_accounts(secret: bytes) -> Entitlement:
    """Accounts of a site that shares this secret with the issuer, and gives a voucher to each."""
    return Entitlement("accounts", lambda asked, _: asked.is_vouched(secret))


class IssuerRole:
    """One issuer and the campaigns that it issues tokens for.

    signers : the round keys that are here now. secret : names people in the store, another name in each round.
    signing : signs how many tokens were issued; its public half stands in the campaign.
    """

    def __init__(
        self,
        campaigns: Iterable[Campaign],
        *,
        store: IssuerStore,
        signers: Mapping[TokenKey, BlindSigner],
        entitled: Entitlement,
        secret: bytes,
        ahead: int = AHEAD,
        signing: SigningKey | None = None,
    ) -> None:
        self.store, self._signers, self.entitled = store, signers, entitled
        self._secret, self._ahead, self._signing = secret, ahead, signing
        self._newest: dict[str, Campaign] = {}
        self._refused, self._lock = Counter[tuple[str, str]](), Lock()
        for campaign in sorted(campaigns, key=lambda each: each.version):
            if campaign.tokens is None:
                raise ConfigError(f"the campaign {campaign.id} asks for no tokens; no issuer serves it.")
            if campaign.id in self._newest:
                require_same_terms(self._newest[campaign.id], campaign)
            self._newest[campaign.id] = campaign
        store.claim_keys(
            (
                (key.id, campaign.id, number)
                for campaign in self._newest.values()
                for number, key in enumerate(campaign.tokens.keys if campaign.tokens else (), 1)
            ),
            naming=hmac.digest(secret, b"dovetail issuer v1\0" + entitled.kind.encode(), "sha256"),
        )

    def issue(self, body: bytes, now: float) -> bytes:
        """The blind signature that a request asks for; it is noted before it is made.

        Raises
        ------
        Refusal
            Of a kind that tells the device whether asking again helps.
        """
        campaign = ""
        try:
            asked = _read(body)
            campaign = asked.campaign if asked.campaign in self._newest else ""
            return self._issue(asked, now)
        except Refusal as refusal:
            with self._lock:
                self._refused[campaign, refusal.kind] += 1
            raise

    def refused(self) -> dict[tuple[str, str], int]:
        """Requests that were refused since the start, by campaign and kind."""
        with self._lock:
            return dict(self._refused)

    def keys_here(self) -> dict[str, list[int]]:
        """Rounds of each campaign whose keys are here."""
        return {
            id: [number for number, key in enumerate(campaign.tokens.keys, 1) if key in self._signers]
            for id, campaign in self._newest.items()
            if campaign.tokens is not None
        }

    def issued(self, id: str, now: float) -> dict[str, Any]:
        """How many tokens each round has that sells no more of them, signed; Refusal for an unknown campaign."""
        campaign = self._newest.get(id)
        if campaign is None or self._signing is None:
            raise Refusal("not_found", "no such campaign is served here.")
        over = {number: count for (of, number), count in self.sold_out(now).items() if of == id}
        return IssuedCounts(id, over).document(self._signing)

    def sold_out(self, now: float) -> dict[tuple[str, int], int]:
        """How many tokens each campaign and round has that sells no more; what is on sale would show people ask."""
        counts = self.store.counts().items()
        return {place: count for place, count in counts if not self._sells(*place, now)}

    def _sells(self, id: str, round: int, now: float) -> bool:
        """True if the round can still get more tokens."""
        campaign = self._newest.get(id)
        if campaign is None or campaign.tokens is None or campaign.tokens.key(round) not in self._signers:
            return False  # its key was taken away; a round that has tokens had it
        try:
            self._require_on_sale(campaign, round, now)
        except Refusal as refusal:
            return refusal.kind != "late"
        return True

    def _issue(self, asked: Application, now: float) -> bytes:
        campaign = self._newest.get(asked.campaign)
        if campaign is None or campaign.tokens is None:
            raise Refusal("not_found", "no such campaign is served here.")
        if not 1 <= asked.round <= campaign.schedule.count:
            raise Refusal("malformed", f"{campaign.id} has the rounds 1 to {campaign.schedule.count}.")
        key = campaign.tokens.key(asked.round)
        if not self.entitled.admits(asked, key):
            raise Refusal("unentitled", "whoever asks is not entitled, or not known to be yet.")
        self._require_on_sale(campaign, asked.round, now)
        signer = self._signers.get(key)
        if signer is None:
            raise Refusal("too_early", "the key of this round is not here yet.")
        if asked.key_byte != key.id[-1] or int.from_bytes(asked.blinded) >= key.rsa.modulus:
            raise Refusal("malformed", "the request is not for the key of this round.")
        outcome = self.store.issue(campaign.id, asked.round, self._name(asked), sha256(asked.request).digest())
        if outcome == "other":
            raise Refusal("issued", "the token of this round was given to another request.")
        return signer.sign(asked.blinded)

    def _require_on_sale(self, campaign: Campaign, round: int, now: float) -> None:
        """Refuse rounds that are over or far ahead: a device that is revoked keeps the tokens that it has."""
        if campaign.expires is not None and now >= campaign.expires.timestamp():
            raise Refusal("late", "the campaign is over.")
        schedule = campaign.schedule
        if schedule.period is None:  # closed by hand: the keys that are here say which rounds are on sale
            return
        if round > schedule.round_at(now) + self._ahead:
            raise Refusal("too_early", "tokens of this round are not on sale yet.")
        if campaign.batch.small != "wait" and now >= schedule.ends(round) + schedule.grace:
            raise Refusal("late", "the round is over.")

    def _name(self, asked: Application) -> bytes:
        place = len(asked.campaign).to_bytes(1) + asked.campaign.encode() + asked.round.to_bytes(4)
        said = b"dovetail issued\0\1" + place + bytes([asked.kind]) + asked.holder
        return hmac.digest(self._secret, said, "sha256")


def _read(body: bytes) -> Application:
    try:
        return read_application(body)
    except DataError as error:
        raise Refusal("malformed", str(error)) from None
