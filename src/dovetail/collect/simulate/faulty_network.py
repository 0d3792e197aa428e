"""The network between devices and shuffler: loses, repeats and delays messages, and tells the audit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dovetail.collect.shuffler.report_intake import ACCEPTED, Reply
from dovetail.collect.simulate.delivery_audit import DeliveryAudit
from dovetail.collect.simulate.faults import MessageFate
from dovetail_device.sender import ACCEPTED as TAKEN
from dovetail_device.sender import UNREACHABLE, DeliveryEvent, refusal_event
from dovetail_protocol.campaign import Campaign


class ShufflerConnection(Protocol):
    """The shuffler as the network reaches it; None where it dies over the question."""

    def answer(self, messages: Sequence[bytes]) -> list[Reply] | None: ...
    def round(self) -> int | None: ...


class FaultyNetwork:
    """A `dovetail_device` transport for every device; `late` holds what has not arrived yet."""

    def __init__(self, server: ShufflerConnection, audit: DeliveryAudit, fate: Callable[[], MessageFate]) -> None:
        self._server, self._audit, self._fate = server, audit, fate
        self.late: list[bytes] = []

    def trust(self, campaign: Campaign) -> None:
        """Answers come from the shuffler of the simulation itself."""

    def send(self, wire: bytes) -> DeliveryEvent:
        """One message, or what the network makes of it; its sender learns of trouble only that nobody answered."""
        self._audit.record_sent(wire)
        fate = self._fate()
        if fate in ("delayed", "repeated"):
            self.late.append(wire)
        if fate in ("delayed", "lost"):
            return UNREACHABLE
        told = self.deliver([wire])
        if told is None or fate == "unanswered":
            return UNREACHABLE
        return TAKEN if told[0].kind == ACCEPTED else refusal_event(told[0].kind, told[0].retry_after or 0.0)

    def fetch(self, campaign: str) -> bytes | None:
        """Nobody changes the campaign of a simulation."""
        return None

    def round(self, campaign: str) -> int | None:
        """The round that the shuffler says, for devices whose clock was wrong and for rounds by hand."""
        return self._server.round()

    def close(self) -> None:
        """There is nothing to close."""

    def deliver(self, messages: Sequence[bytes]) -> list[Reply] | None:
        """Messages of any age, all at once. What is acknowledged counts as such, whoever hears of it."""
        told = self._server.answer(messages)
        for wire, answer in zip(messages, told or (), strict=False):
            if answer.kind == ACCEPTED:
                self._audit.record_acknowledged(wire)
        return told

    def deliver_late(self) -> None:
        """Deliver what was held up and repeated; nobody waits for these answers any more."""
        waiting, self.late = self.late, []
        if waiting:
            self.deliver(waiting)
