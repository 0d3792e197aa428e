"""Devices with answers: who they are, what they would say, and how they say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.collect.simulate.faults import Crash, Role, SeededChance
from dovetail.collect.simulate.throwaway_campaign import ThrowawayCampaign
from dovetail.core.display.display import mute
from dovetail.randomize.sampling.from_device import from_device
from dovetail_device.client import Clock, Device, RoundUnknown, Transport
from dovetail_device.entropy import system_entropy
from dovetail_device.ledger import Limits
from dovetail_device.outbox import BudgetSpent, Outbox
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.words import Words

TrueAnswers = NDArray[Any]  # (rounds, devices): symbols or numbers on the grid


@mute
@dataclass(frozen=True)
class SimulatedDevices:
    """The devices of a world, each with an outbox that outlives its crashes.

    Their reports are drawn from the operating system; what they would answer, and the faults, from a seed.
    """

    world: ThrowawayCampaign
    answers: TrueAnswers
    groups: tuple[str | None, ...]
    outboxes: tuple[Outbox, ...]
    dying: Callable[[Any, Role], Any] = field(repr=False)
    words: Words = field(repr=False)
    _alive: dict[int, Device] = field(default_factory=dict, repr=False)
    _unsettled: set[int] = field(default_factory=set, repr=False)  # devices whose reports may wait

    @classmethod
    def of(
        cls, world: ThrowawayCampaign, dying: Callable[[Any, Role], Any], chance: SeededChance
    ) -> SimulatedDevices:
        """Answers and public groups by chance: symbols ever rarer, numbers ever more alike.

        dying : wraps what a device of this role works with, so that it may die over it.
        """
        campaign, count = world.campaign, len(world.devices)
        answers = np.array(
            [[_answer(campaign, chance) for _ in range(count)] for _ in range(campaign.schedule.count)]
        )
        groups = [
            campaign.groups[chance.below(len(campaign.groups))] if campaign.groups else None for _ in range(count)
        ]
        keys = [device.signing.verifying_key() for device in world.devices if device.signing]
        outboxes = tuple(Outbox.in_memory(key) for key in keys)
        for outbox in outboxes:  # nobody's values: only the campaign's own budget counts
            outbox.limit(Limits(campaign.promise.device_budget, campaign.promise.device_budget))
        return cls(world, answers, tuple(groups), outboxes, dying, system_entropy())

    def truth(self, round: int, devices: list[int]) -> NDArray[np.float64]:
        """What the analyst would like to know of these devices: shares of the symbols, or the mean; of nobody: 0.

        Where people have different epsilons the shares are weighted, as estimates are.
        """
        answers, k = self.answers[round - 1, devices], getattr(self.world.campaign.mechanism, "k", None)
        if k is None:
            return np.array([answers.sum() / max(1, len(devices))])
        weights = np.array([self._weight(number) for number in devices])
        sums = np.bincount(answers.astype(np.int64), weights=weights, minlength=k)
        return np.asarray(sums / (self.weight(devices) or 1.0))

    def weight(self, devices: list[int]) -> float:
        """What these devices weigh in estimates together: their number where all have one epsilon."""
        return float(sum(self._weight(number) for number in devices))

    def place(self, number: int) -> int:
        """The class in which a device takes part: one after the other."""
        return number % max(1, len(self.world.campaign.classes))

    def _weight(self, number: int) -> float:
        campaign = self.world.campaign
        if not campaign.classes:
            return 1.0
        own: Any = from_device(campaign.of_class(self.place(number)).mechanism)
        return float(own.channel().contrast)

    def device(self, number: int, transport: Transport, clock: Clock) -> Device:
        """Device `number`, switched on if it was not."""
        if number not in self._alive:
            self._alive[number] = Device(
                self.world.campaign,
                self.world.devices[number],
                outbox=self.dying(self.outboxes[number], "device"),
                transport=self.dying(transport, "device"),
                clock=clock,
                words=self.words,
                trust="users" if self.world.campaign.sent else None,
                epsilon_class=self._class_name(number),
            )
        return self._alive[number]

    def _class_name(self, number: int) -> str | None:
        classes = self.world.campaign.classes
        return classes[self.place(number)].name if classes else None

    def submit(self, number: int, round: int | None, answer: Any, transport: Transport, clock: Clock) -> None:
        """One device answers, if its budget still pays for that and it does not die."""
        self._unsettled.add(number)
        with self._switched_on(number), suppress(BudgetSpent, RoundUnknown):
            self.device(number, transport, clock).submit(answer, round, group=self.groups[number])

    def report(self, round: int, numbers: Iterable[int], transport: Transport, clock: Clock) -> None:
        """These devices report for a round, in this order."""
        for number in numbers:
            self.submit(number, round, self.answers[round - 1, number].item(), transport, clock)

    def flush(self, transport: Transport, clock: Clock, numbers: Iterable[int] | None = None) -> None:
        """Devices with something that waits try to send it."""
        for number in sorted(self._unsettled) if numbers is None else numbers:
            if self.outboxes[number].waiting(self.world.campaign.id):
                with self._switched_on(number):
                    self.device(number, transport, clock).flush()
            else:
                self._unsettled.discard(number)

    def switch_off(self, number: int) -> None:
        """All that is left of the device is its outbox."""
        self._alive.pop(number, None)

    @contextmanager
    def _switched_on(self, number: int) -> Iterator[None]:
        try:
            yield
        except Crash:
            self.switch_off(number)

    def close(self) -> None:
        """Let go of the outboxes."""
        for outbox in self.outboxes:
            outbox.close()


def _answer(campaign: Campaign, chance: SeededChance) -> Any:
    k = getattr(campaign.mechanism, "k", None)
    if k is not None:
        return int(k * chance.number() ** 2)  # small symbols are common, the last one is rare
    randomizer: Any = from_device(campaign.mechanism)
    place = (chance.number() + chance.number() + chance.number()) / 3
    return float(randomizer.lower + randomizer.step * round(place * randomizer.steps))
