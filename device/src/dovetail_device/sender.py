"""Delivery of one report, as a state machine without I/O: events in, effects out.

The transitions are the table `TRANSITIONS`; whatever it does not list changes nothing. Back-off is exponential and
fully jittered, so that devices that failed together do not come back together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from dovetail_protocol.exact_thresholds import Words
from dovetail_protocol.messages import Answer

DeliveryState = Literal["waiting", "sending", "fetching", "resending", "accepted", "refused"]
EventName = Literal["due", "accepted", "outdated", "renewed", "later", "final"]
DeliveryEffect = Literal["send", "fetch", "reseal", "wait", "settle"]

FINAL: dict[str, str] = {
    "malformed": "the shuffler cannot read it",
    "version": "the shuffler does not understand this version of the message",
    "round": "the campaign has no such round",
    "late": "its round is over",
    "lost": "the shuffler has lost the key of its round, which counts no reports",
    "seal": "it is not sealed to this shuffler",
    "signature": "the device's signature does not hold",
    "content": "the shuffler refuses what it says",
    "revoked_device": "the device has been taken off the roster",
    "second_report": "the shuffler has another report of this device for the round",
    "too_large": "it is longer than the shuffler takes",
    "changed": "a newer version of the campaign asks something else",
}
"""Refusals after which a report is never sent again, in words."""

LATER: dict[str, str] = {
    "unreachable": "nobody answered",
    "untrusted": "the certificate there is not trusted here; SSL_CERT_FILE names a file of those that are",
    "unauthorized": "the broker wants another user or password",
    "unavailable": "the service is not available",
    "unsigned": "what answered has not signed as the shuffler; a proxy, or somebody else",
    "unanswered": "the broker has it, the shuffler has not answered yet",
    "unsubscribed": "no shuffler takes reports of this campaign at the broker",
    "rate_limited": "the shuffler is busy",
    "too_early": "its round has not begun",
    "campaign": "the shuffler wants another version of the campaign",
    "unknown_device": "the device is not on the roster, or not yet",
    "token": "it has no token",
}
"""Refusals after which it is; every other kind counts as `unavailable`."""

TRANSITIONS: dict[tuple[DeliveryState, EventName], tuple[DeliveryState, tuple[DeliveryEffect, ...]]] = {
    ("waiting", "due"): ("sending", ("send",)),
    ("sending", "accepted"): ("accepted", ("settle",)),
    ("sending", "later"): ("waiting", ("wait",)),
    ("sending", "final"): ("refused", ("settle",)),
    ("sending", "outdated"): ("fetching", ("fetch",)),
    ("fetching", "renewed"): ("resending", ("reseal", "send")),
    ("fetching", "later"): ("waiting", ("wait",)),
    ("fetching", "final"): ("refused", ("settle",)),
    ("resending", "accepted"): ("accepted", ("settle",)),
    ("resending", "later"): ("waiting", ("wait",)),
    ("resending", "outdated"): ("waiting", ("wait",)),
    ("resending", "final"): ("refused", ("settle",)),
}


@dataclass(frozen=True)
class DeliveryEvent:
    """Event of a delivery: `reason` is the kind of a refusal, `after` the seconds that the service asks to wait."""

    name: EventName
    reason: str = ""
    after: float = 0.0


@dataclass(frozen=True)
class Backoff:
    """Waiting: uniform on [0, min(longest, base 2^attempts)] seconds, on top of what the service asks for."""

    base: float = 1.0
    longest: float = 3600.0
    obeyed: float = 86400.0  # no service keeps a device waiting longer than this

    @property
    def most(self) -> float:
        """The longest wait of all, seconds."""
        return self.obeyed + self.longest

    def seconds(self, attempts: int, *, after: float, words: Words) -> float:
        """Seconds to wait after so many attempts."""
        ceiling = min(self.longest, self.base * 2.0 ** min(attempts, 64))
        return min(max(after, 0.0), self.obeyed) + ceiling * words.bits(53) / (1 << 53)


@dataclass(frozen=True)
class Sender:
    """The delivery of one report; `wait` and `reason` belong to the last transition."""

    state: DeliveryState = "waiting"
    attempts: int = 0
    wait: float = 0.0  # seconds
    reason: str = ""


DUE, ACCEPTED, RENEWED = DeliveryEvent("due"), DeliveryEvent("accepted"), DeliveryEvent("renewed")


def refusal_event(kind: str, after: float = 0.0) -> DeliveryEvent:
    """The event of a refusal of this kind."""
    if kind in FINAL:
        return DeliveryEvent("final", kind)
    if kind == "campaign":
        return DeliveryEvent("outdated", kind)
    return DeliveryEvent("later", kind if kind in LATER else "unavailable", after)


UNREACHABLE, UNTRUSTED, UNAUTHORIZED = map(refusal_event, ("unreachable", "untrusted", "unauthorized"))
# A broker alone cannot tell a shuffler that is away from one that takes a newer version of the campaign only.
UNANSWERED, UNSUBSCRIBED = DeliveryEvent("outdated", "unanswered"), DeliveryEvent("outdated", "unsubscribed")
UNSIGNED = DeliveryEvent("outdated", "unsigned")  # nor a stranger from one that has other keys in a newer version


def answer_event(answer: Answer) -> DeliveryEvent:
    """Read the shuffler's own answer as an event."""
    return ACCEPTED if answer.kind == "accepted" else refusal_event(answer.kind, float(answer.after))


def advance(
    sender: Sender, event: DeliveryEvent, *, backoff: Backoff, words: Words
) -> tuple[Sender, tuple[DeliveryEffect, ...]]:
    """The machine after an event, and what is to be done now, in this order."""
    if (sender.state, event.name) not in TRANSITIONS:
        return sender, ()
    state, effects = TRANSITIONS[sender.state, event.name]
    sender = replace(sender, state=state, reason=event.reason, wait=0.0)
    if "wait" in effects:
        seconds = backoff.seconds(sender.attempts, after=event.after, words=words)
        sender = replace(sender, wait=seconds, attempts=sender.attempts + 1)
    return sender, effects
