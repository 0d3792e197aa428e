"""The devices of a simulated collection in TypeScript: this is their clock, their network and what kills them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from tests.node import CLIENT, Node

from dovetail.collect.simulate.deployment import ThrowawayCampaign
from dovetail.collect.simulate.faults import Crash
from dovetail.collect.simulate.simulation import SimulatedDevices
from dovetail_protocol.campaign import Campaign

PROGRAM = CLIENT / "test" / "machine.mjs"


class _Step:
    """An operation of a store, as `CrashInjector` wraps it."""

    def take(self) -> None:
        """Nothing but the chance to die."""


@dataclass(frozen=True)
class _Ledger:
    spent: float
    budget: float
    counts: dict[str, int]


@dataclass(frozen=True)
class _Outbox:
    """What one device keeps, as the machine looks at it."""

    fleet: TypeScriptDevices
    place: int

    def waiting(self, _: str) -> list[int]:
        states = {each["round"]: each["state"] for each in self._reports()}
        return [number for number, state in states.items() if state in ("drawn", "sealed")]

    def ledgers(self) -> list[_Ledger]:
        budget = self.fleet.world.campaign.promise.device_budget
        return [
            _Ledger(each["spent"], budget, {"drawn": len(each["reports"])})
            for each in self.fleet.ask("account", self.place)
        ]

    def class_of(self, campaign: Campaign) -> int:
        names = [each.name for each in campaign.classes]
        joined = [each["joined"] for each in self.fleet.ask("account", self.place)]
        return names.index(joined[0]) if joined and joined[0] else 0

    def close(self) -> None:
        """The program keeps it."""

    def _reports(self) -> list[dict[str, Any]]:
        return [report for each in self.fleet.ask("account", self.place) for report in each["reports"]]


@dataclass(frozen=True)
class TypeScriptDevices(SimulatedDevices):
    """As `SimulatedDevices`, with one program of Node for all of them."""

    node: Node = field(default_factory=lambda: Node(PROGRAM))
    dies_by: str = "off"  # "forget" where what has not arrived is neither kept nor paid for

    @classmethod
    def like(cls, fleet: SimulatedDevices, dies_by: str = "off") -> Self:
        """The same people with other devices."""
        made = cls(fleet.world, fleet.answers, fleet.groups, (), fleet.dying, fleet.words, dies_by=dies_by)
        world: ThrowawayCampaign = fleet.world
        made.node.tell(
            {
                "file": world.campaign.signed.hex(),
                "secrets": [each.signing.secret.hex() for each in world.devices if each.signing],
                "classes": [each.name for each in world.campaign.classes],
                "budget": world.campaign.promise.device_budget,
                "trust": "users" if world.campaign.sent else None,
            }
        )
        object.__setattr__(made, "outboxes", tuple(_Outbox(made, place) for place in range(len(world.devices))))
        return made

    def submit(self, number: int, round: int | None, answer: Any, transport: Any, clock: Any) -> None:
        """One device answers, if its budget still pays for that and it does not die."""
        self._unsettled.add(number)
        self.ask("submit", number, transport, value=answer, round=round, now=clock.now())

    def flush(self, transport: Any, clock: Any, numbers: Iterable[int] | None = None) -> None:
        """Devices with something that waits try to send it."""
        for number in sorted(self._unsettled) if numbers is None else numbers:
            self.ask("flush", number, transport, now=clock.now())

    def switch_off(self, number: int) -> None:
        """All that is left of the device is its memory."""
        self.ask(self.dies_by, number)

    def ask(self, what: str, place: int, transport: Any = None, **more: Any) -> Any:
        """What the program answers, after all that it asks on the way; None where the device refuses or dies."""
        step, network = self.dying(_Step(), "device"), self.dying(transport, "device")
        found = self.node.ask({"do": what, "place": place, **more})
        while "ask" in found:
            try:
                if found["ask"] == "send":
                    answer: dict[str, Any] = asdict(network.send(bytes.fromhex(found["wire"])))
                elif found["ask"] == "round":
                    answer = {"round": network.round(self.world.campaign.id)}
                else:
                    step.take()
                    answer = {}
            except Crash:
                answer = {"dies": True}
            found = self.node.ask(answer)
        assert found.get("refused") in (None, "dies", "budget", "round"), found
        return found.get("done")

    def close(self) -> None:
        """Stop the program."""
        self.node.__exit__(None, None, None)
