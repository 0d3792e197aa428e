"""The device: takes a value, randomizes it once for a round, and sends that report until it has arrived."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, final

from dovetail_device import tokens
from dovetail_device.ledger import HeldToken, LedgerEntry, terms_of
from dovetail_device.outbox import Outbox
from dovetail_device.sender import (
    DUE,
    FINAL,
    LATER,
    RENEWED,
    Backoff,
    DeliveryEffect,
    DeliveryEvent,
    EventName,
    Sender,
    advance,
)
from dovetail_protocol import messages as message
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.checks import privacy_budget, refuse, whole
from dovetail_protocol.dummies import TRUSTED
from dovetail_protocol.errors import ConfigError, DataError, DovetailError
from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.keys import RoleKeys, SigningKey, VerifyingKey

AHEAD = 3  # rounds after the one that runs whose tokens are fetched before they are needed


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""


class Transport(Protocol):
    """A way to the shuffler; faults are answers (None, or an event), never exceptions."""

    def trust(self, campaign: Campaign) -> None:
        """Take answers to messages for this version from the shuffler that it names."""

    def send(self, wire: bytes) -> DeliveryEvent:
        """Deliver one message and say what became of it."""

    def fetch(self, campaign: str) -> bytes | None:
        """The signed campaign file as the shuffler has it now, None if nobody says."""

    def round(self, campaign: str) -> int | None:
        """The round that takes reports now; 0 if none does, None if nobody says."""

    def close(self) -> None:
        """Let go of connections."""


class RoundUnknown(DovetailError):
    """No round takes reports now, or nobody says which one does; nothing was drawn."""


@dataclass(frozen=True)
class SystemClock:
    """The clock of the operating system."""

    def now(self) -> float:
        return time.time()


@dataclass(frozen=True)
class Receipt:
    """Receipt for the report of one round.

    state : "accepted", by the shuffler and nobody in between; "waiting", stored and sent again by
    `flush`; or "refused" for good. reason : the kind of the last refusal, empty if there was none. wait : seconds
    until `flush` sends it. drawn : whether this call drew the report; if not, one that was drawn before stands, for
    this round or for an earlier one that has not arrived, or has only just, or for all of a memoized campaign.
    """

    campaign: str
    round: int
    state: Literal["accepted", "waiting", "refused"]
    reason: str = ""
    wait: float = 0.0
    drawn: bool = False

    def __str__(self) -> str:
        why = (FINAL | LATER).get(self.reason, "")
        return f"{self.campaign}, round {self.round}: {self.state}" + (f" ({why})." if why else ".")


@final
class Device:
    """One person's device in one campaign.

    At most one report is ever drawn per round: a second `submit` in a round, also of another value and also after a
    crash, sends the first report again or says what became of it. While a report waits, no other is drawn, and none
    is drawn for a round that is over: an outage costs one report. In a memoized campaign one report is drawn for all
    rounds, and later values are not used. The caller closes outbox and transport.

    Parameters
    ----------
    campaign : Campaign
        Its owner is pinned at first use; a newer version that the device has seen takes its place.
    keys : RoleKeys of the role "device"
    outbox : Outbox of the same device
    transport : Transport
    clock : Clock
    words : Words
        `dovetail_device.entropy.system_entropy()` outside tests and simulations.
    max_epsilon : float, nats, optional
        The device's own cap on the epsilon of one report. What it gives in all is a limit of the outbox.
    owners : collection of VerifyingKey, optional
        Who may ask, and nobody else; naming an owner is consent. If nobody is named, owners met before may ask, or
        the first one met.
    question : str, optional
        What budgets are counted by, such as the name of a sensor; default the words of the campaign's question.
    hand_over : bool
        Whether consent to an owner is consent to whom that owner hands the campaign over, by a signed line; where it
        is not, the next owner has to be named.
    trust : str, optional
        "users" or "shuffler": answer also where only dummies of other people, or of the shuffler, hide the answer,
        and nothing is randomized.
    issuer : Issuer, optional
        Who issues the tokens of a campaign that asks for them.
    entitlement : bytes, optional
        By what a token is asked for: an invitation's code or an account's voucher; default the device's own key.
    epsilon_class : str, optional
        The class in which the device takes part, where people have different epsilons; by default the one that it
        has joined, or else the one with the smallest epsilon. Chosen once, with the first report, and never by the
        value.

    Raises
    ------
    ConfigError
        When the campaign is of an owner without consent, or has another owner than before, asks for more than
        `max_epsilon` or for a trust that was not given, or has been changed.

    Notes
    -----
    All budgets are counted by this software, in this outbox. They bind a device for as long as it is honest and keeps
    its memory, see `remembers`.

    Versions of the campaign that the shuffler offers later are followed if its owner has signed them and they ask the
    same by the same mechanism, as after a rotation of keys; they never raise the budget. Anything else takes a file
    that is given by hand.
    """

    def __init__(
        self,
        campaign: Campaign,
        keys: RoleKeys,
        *,
        outbox: Outbox,
        transport: Transport,
        clock: Clock,
        words: Words,
        max_epsilon: float | None = None,
        owners: Collection[VerifyingKey] = (),
        question: str | None = None,
        hand_over: bool = True,
        trust: str | None = None,
        epsilon_class: str | None = None,
        issuer: tokens.Issuer | None = None,
        entitlement: bytes | None = None,
    ) -> None:
        if keys.role != "device" or keys.signing is None:
            raise ConfigError("a device needs keys of the role device; `dovetail-device keys` makes them.")
        given = Campaign.parse(campaign.signed)  # only what the owner signed is followed, whatever built the object
        epsilon = given.of_class(outbox.class_of(given, epsilon_class)).mechanism.epsilon
        if max_epsilon is not None and epsilon > privacy_budget("max_epsilon", max_epsilon):
            raise ConfigError(
                f"the campaign {given.id} asks for reports of epsilon {epsilon:g}, and this device gives at most "
                f"{max_epsilon:g}."
            )
        _require_trust(given, trust)
        self._hand_over = hand_over
        self._campaign = outbox.adopt(given, owners=owners, hand_over=hand_over)
        if terms_of(self._campaign) != terms_of(given):
            raise ConfigError(
                f"version {self._campaign.version} of the campaign {given.id} asks something else than version "
                f"{given.version}; use the file of the newer one."
            )
        self._place = outbox.class_of(self._campaign, epsilon_class)
        self._key: SigningKey = keys.signing
        self._issuer, self._entitlement = issuer, entitlement or keys.signing
        if given.tokens is not None and issuer is None:
            raise ConfigError(f"the campaign {given.id} asks for tokens; name their `issuer`.")
        self._question = question
        self._budget = given.promise.device_budget
        self._outbox, self._transport, self._clock, self._words = outbox, transport, clock, words
        transport.trust(self._campaign)

    @property
    def campaign(self) -> Campaign:
        """The version of the campaign that the device follows now."""
        return self._campaign

    @property
    def remembers(self) -> bool:
        """True if any report was ever charged here; one that was installed anew knows of nothing before."""
        return self._outbox.spending().spent > 0.0

    def submit(self, value: Any, round: int | None = None, *, group: str | None = None) -> Receipt:
        """Draw the report of this value, or find the report that stands for the round, and send it once.

        Reports of earlier rounds that wait are sent first. As long as one of them does not arrive, it is the answer.

        Parameters
        ----------
        value : what the campaign's mechanism takes, or one of its categories; where [asks] names several values, a
            mapping by their names
        round : int, optional
            By default the round that runs now: by the schedule and the device's clock, or as the shuffler says where
            rounds are opened by hand and where the clock has been wrong.
        group : one of the campaign's public groups, exactly if it has any

        Raises
        ------
        DataError
            When the value is outside the range; the message does not repeat it.
        BudgetSpent, RoundUnknown, TokenRefused, ConfigError
            When a budget is spent, no round runs, this one is over, the issuer gives no token for it, or the campaign
            is over. Nothing was drawn.
        """
        campaign = self._current()
        answer = _answer(value, campaign)
        asks, last = self._asks(), campaign.schedule.count
        number = self._round(asks=asks) if round is None else whole("round", round, least=1, most=last)
        if self._outbox.find(campaign.id, number) is None:
            if round is not None:
                self._refuse_over(number, asks=asks)
            self._send_earlier(number)
            campaign = self._current()  # what was sent may have told of a newer version
            self._require_token(number)

        drawn = False

        def draw() -> bytes:
            nonlocal drawn
            drawn = True
            return message.draw(own, answer, self._words, group)

        self._outbox.join(campaign, self._place)
        own = campaign.of_class(self._place)
        budget = min(self._budget, campaign.promise.device_budget)
        entry = self._outbox.draw(
            campaign, number, budget=budget, make=draw, question=self._question, price=own.charged
        )
        receipt = self._deliver(entry)
        if round is None and not asks and receipt.reason in ("too_early", "late", "round"):
            self._outbox.doubt_clock(campaign.id, wrong=True)
        return replace(receipt, drawn=drawn)

    def flush(self) -> list[Receipt]:
        """Send every waiting report that is due, the oldest round first, and say what became of all of them."""
        return [self._deliver(entry) for entry in self._outbox.waiting(self._campaign.id)]

    def fetch_tokens(self, ahead: int = AHEAD) -> list[tokens.TokenReceipt]:
        """Ask for the tokens of the round that runs and of so many after it, and say what became of each.

        Best done long before a report, at a moment that has nothing to do with it: an issuer and a shuffler that
        compare their clocks find who asked a minute before a report came.

        Raises
        ------
        RoundUnknown, ConfigError
            When nobody says which round runs, or the campaign is over or asks for no tokens.
        """
        campaign, now = self._current(), self._round_or_first()
        whole("ahead", ahead, least=0)
        return [self._fetch_token(round) for round in range(now, min(now + ahead, campaign.schedule.count) + 1)]

    def _fetch_token(self, round: int) -> tokens.TokenReceipt:
        held, reason = self._ask_for_token(round)
        state = "waiting" if held.state == "asked" else held.state
        return tokens.TokenReceipt(self._campaign.id, round, state, reason)

    def _ask_for_token(self, round: int) -> tuple[HeldToken, str]:
        assert self._issuer is not None
        return tokens.fetch_token(self._outbox, self._campaign, round, issuer=self._issuer, by=self._entitlement)

    def _require_token(self, round: int) -> None:
        """Draw nothing that could never be sent; an issuer that does not answer is a reason to wait."""
        if self._campaign.tokens is not None:
            reason = self._ask_for_token(round)[1]
            if reason and reason != "unavailable":
                raise tokens.TokenRefused(self._campaign.id, round, reason)

    # Which round, and which version

    def _refuse_over(self, round: int, *, asks: bool) -> None:
        """No report is drawn, and charged, that could only come late: it would count for another or for none."""
        campaign, schedule = self._campaign, self._campaign.schedule
        if schedule.period is None:
            over = (self._transport.round(campaign.id) or 0) > round
        else:
            stays_open = campaign.batch.small == "wait" and campaign.batch.late == "refuse"
            over = not (asks or stays_open) and self._is_over(round)
        if over:
            raise RoundUnknown(f"round {round} of the campaign {campaign.id} is over; nothing was drawn.")

    def _is_over(self, round: int) -> bool:
        """True if a round of a campaign by the clock has ended, grace included."""
        schedule = self._campaign.schedule
        return self._clock.now() >= schedule.ends(round) + schedule.grace

    def _send_earlier(self, round: int) -> None:
        """Reports of other rounds go first, until one of them does not arrive."""
        for entry in self._outbox.waiting(self._campaign.id):
            if entry.round != round and entry.reason != "too_early" and self._deliver(entry).state == "waiting":
                return

    def _counts_for(self, entry: LedgerEntry) -> int:
        """The later round that a report counts for if it arrives now; 0 where it counts for its own."""
        campaign, schedule = self._campaign, self._campaign.schedule
        if campaign.batch.late != "next":
            return 0
        if schedule.period is not None and not self._outbox.doubts_clock(campaign.id):
            return min(schedule.round_at(self._clock.now()), schedule.count) if self._is_over(entry.round) else 0
        running = self._transport.round(campaign.id) if entry.attempts else None  # it arrives late after waiting only
        return running if running is not None and running > entry.round else 0

    def _asks(self) -> bool:
        """True if the shuffler, not the device's clock, says which round runs."""
        return self._campaign.schedule.period is None or self._outbox.doubts_clock(self._campaign.id)

    def _round(self, *, asks: bool) -> int:
        id, schedule = self._campaign.id, self._campaign.schedule
        by_clock = None if schedule.period is None else schedule.round_at(self._clock.now())
        number = self._transport.round(id) if asks else by_clock
        if number is None:
            raise RoundUnknown(f"nobody says which round of the campaign {id} runs; try again, or name the round.")
        if not 1 <= number <= schedule.count:
            raise RoundUnknown(f"no round of the campaign {id} takes reports now.")
        if asks and number == by_clock:
            self._outbox.doubt_clock(id, wrong=False)
        return number

    def _round_or_first(self) -> int:
        """The round that runs; the first one before it has begun."""
        try:
            return self._round(asks=self._asks())
        except RoundUnknown:
            schedule = self._campaign.schedule
            if schedule.period is not None and schedule.round_at(self._clock.now()) < 1:
                return 1
            raise

    def _current(self) -> Campaign:
        """The campaign, which reports can still be drawn for."""
        if self._has_expired():
            self._follow()
        campaign = self._campaign
        if self._outbox.is_superseded(campaign):
            raise ConfigError(
                f"a newer version of the campaign {campaign.id} asks something else; give its file to take part."
            )
        if self._has_expired():
            raise ConfigError(f"the campaign {campaign.id} has expired; ask its owner for a newer version.")
        return campaign

    def _has_expired(self) -> bool:
        expires = self._campaign.expires
        return expires is not None and self._clock.now() >= expires.timestamp()

    def _follow(self) -> None:
        """Take over a newer version of the shuffler's if it asks the same, and else remember that there is one."""
        known, signed = self._campaign, self._transport.fetch(self._campaign.id)
        try:
            fresh = Campaign.parse(signed or b"", known.owner)
        except DovetailError:
            return  # not signed by the owner, so the owner has not said it
        if fresh.id != known.id or fresh.version <= known.version:
            return
        if fresh.owner != known.owner and not self._hand_over:
            return  # the person who runs the device has not consented
        if terms_of(fresh) == terms_of(known):
            self._campaign = self._outbox.adopt(fresh, hand_over=self._hand_over)
            self._transport.trust(self._campaign)
        else:
            self._outbox.supersede(fresh)

    # Delivery

    def _deliver(self, entry: LedgerEntry) -> Receipt:
        """Run the sender's machine until the report is settled or has to wait."""
        backoff, now = self._backoff(), self._clock.now()
        if entry.settled or now < entry.due <= now + backoff.most:  # a later date is of a clock that was wrong
            return self._receipt(entry)
        sender = Sender(attempts=entry.attempts)
        event: DeliveryEvent | None = DUE
        while event is not None:
            sender, effects = advance(sender, event, backoff=backoff, words=self._words)
            event = None
            for effect in effects:
                entry, event = self._perform(effect, entry, sender)
        return self._receipt(entry)

    def _perform(
        self, effect: DeliveryEffect, entry: LedgerEntry, sender: Sender
    ) -> tuple[LedgerEntry, DeliveryEvent | None]:
        """Carry out one effect, and say what it led to."""
        if effect == "send":
            return self._send(entry)
        if effect == "fetch":
            return entry, self._renew(entry, sender.reason)
        if effect == "reseal":
            return (entry if self._misses_token(entry) else self._seal(entry)), None
        if effect == "wait":
            due = self._clock.now() + sender.wait
            return self._outbox.postpone(entry, sender.reason, attempts=sender.attempts, due=due), None
        refusal = "" if sender.state == "accepted" else sender.reason
        return self._outbox.settle(entry, refusal, counted=0 if refusal else self._counts_for(entry)), None

    def _send(self, entry: LedgerEntry) -> tuple[LedgerEntry, DeliveryEvent]:
        if not entry.wire and entry.form == terms_of(self._campaign):
            if missing := self._misses_token(entry):
                return entry, missing
            entry = self._seal(entry)
        if not entry.wire:  # drawn for a question that is asked no more, or settled by another process
            return entry, DeliveryEvent("outdated", "campaign")
        return entry, self._transport.send(entry.wire)

    def _renew(self, entry: LedgerEntry, why: str) -> DeliveryEvent:
        """True if the same report can be sealed again for some version of the campaign; else it waits."""
        if entry.digest == self._campaign.digest:
            self._follow()
        if entry.form != terms_of(self._campaign) or self._outbox.is_superseded(self._campaign):
            return DeliveryEvent("final", "changed")
        return RENEWED if entry.digest != self._campaign.digest else DeliveryEvent("later", why)

    def _misses_token(self, entry: LedgerEntry) -> DeliveryEvent | None:
        """Why a report cannot be sealed, where it needs a token and has none."""
        if self._campaign.tokens is None:
            return None
        missing: dict[str, EventName] = {"asked": "later", "refused": "final"}
        name = missing.get(self._ask_for_token(entry.round)[0].state)
        return None if name is None else DeliveryEvent(name, "token")

    def _seal(self, entry: LedgerEntry) -> LedgerEntry:
        campaign, key = self._campaign, self._key  # another process may have joined, and drawn it, since this began
        place = self._outbox.class_of(campaign) if campaign.classes else None
        token = b""
        if campaign.tokens is not None:
            held = self._ask_for_token(entry.round)[0]
            if not held.token:
                return entry  # another process has found it to be of other keys meanwhile
            key, token = SigningKey(held.secret), held.token
        return self._outbox.seal(
            campaign,
            entry.round,
            lambda report: message.seal(
                campaign, report.round, report.plaintext, key, report.id, place=place, token=token
            ),
        )

    def _backoff(self) -> Backoff:
        """Waits shorter than half a round, so that a report seldom misses its own."""
        period = self._campaign.schedule.period
        return Backoff() if period is None else Backoff(longest=min(Backoff.longest, period / 2))

    def _receipt(self, entry: LedgerEntry) -> Receipt:
        if entry.state == "accepted" or entry.state == "refused":
            return Receipt(entry.campaign, entry.round, entry.state, entry.reason)
        wait = max(0.0, entry.due - self._clock.now())
        return Receipt(entry.campaign, entry.round, "waiting", entry.reason, wait)


def _require_trust(campaign: Campaign, trust: str | None) -> None:
    """Refuse a campaign without a local promise, unless the person who runs the device trusts who makes the noise."""
    if trust not in (None, *TRUSTED):
        raise refuse("trust", '"users", "shuffler" or nothing', trust)
    asked = campaign.promise.trust
    if campaign.open and trust != asked:
        raise ConfigError(
            f"the campaign {campaign.id} promises nothing for a single report: answers are sent as they are, among "
            f'dummies of {TRUSTED[asked]}. Its user allows that with trust = "{asked}" (--trust {asked}).'
        )


def _answer(value: Any, campaign: Campaign) -> Any:
    """The value in the type that is randomized; a category stands for its number."""
    if campaign.asked is not None:
        return campaign.asked.check(value)
    if isinstance(value, str):
        if value not in campaign.categories:
            named = ", ".join(campaign.categories)
            raise DataError(f"`value` must be one of {named}." if named else "`value` must be a number.")
        return campaign.categories.index(value)
    return campaign.mechanism.check(value)
