"""Hosts that are restored from backups: nobody is counted twice, and the campaign goes on."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from dovetail.collect.shuffler.link_key_store import MemoryLinkKeyStore
from dovetail.collect.simulate.deployment import COMMUTE, PERIOD, ThrowawayCampaign, schedule
from dovetail.collect.simulate.faults import MessageFate, SeededChance
from dovetail.collect.simulate.simulation import SimulatedDevices, Simulation
from dovetail.collect.store.analyzer_store import open_analyzer_store
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.entropy import simulation

DEVICES = 6


class Hosts:
    """A shuffler and an analyzer, each with a database that can be put back."""

    def __init__(self, folder: Path) -> None:
        self.files = {role: folder / f"{role}.sqlite" for role in ("shuffler", "analyzer")}
        tables = COMMUTE | {
            "rounds": schedule(5),
            "batch": {"minimum": 2, "small": "wait", "late": "refuse"},
            "promise": {"delta": 1e-6, "device_budget": 100.0},
        }
        self.fate: MessageFate = "arrives"
        self.sim = Simulation(
            ThrowawayCampaign.of(tables, DEVICES), dies=lambda _: False, rng=simulation(1),
            fate=lambda role: self.fate if role == "shuffler" else "arrives",
            stores=(self.url("shuffler"), self.url("analyzer")),
        )  # fmt: skip
        self.fleet = SimulatedDevices.of(self.sim.world, self.sim.dying, SeededChance(1))
        self.sim.step()

    def url(self, role: str) -> str:
        return f"sqlite:///{self.files[role]}"

    def report(self, round: int, *devices: int) -> None:
        self.fleet.report(round, devices, self.sim.network, self.sim.clock)

    def backup(self, role: str) -> bytes:
        copy = self.files[role].with_name("copy")
        with closing(sqlite3.connect(self.files[role])) as base:
            base.execute("VACUUM INTO ?", [str(copy)])
        content = copy.read_bytes()
        copy.unlink()
        return content

    def restore(self, role: str, content: bytes) -> None:
        """The host is gone with everything but the backup; of the shuffler also the keys of its rounds."""
        (self.sim.store if role == "shuffler" else self.sim.counted).close()
        for path in self.files[role].parent.glob(f"{role}.sqlite*"):
            path.unlink()
        self.files[role].write_bytes(content)
        if role == "shuffler":
            self.sim.store, self.sim.link_keys = open_shuffler_store(self.url(role)), MemoryLinkKeyStore()
            self.sim.shuffler = None
        else:
            self.sim.counted = open_analyzer_store(self.url(role))
            self.sim.restart_analyzer()

    def counted(self) -> list[tuple[int, ...]]:
        """The rounds of every counted batch; no report and no device of a round may be in two."""
        known = {batch.id for batch in self.sim.counted.batches("commute")}
        members = [(header, found) for header, found in self.sim.audit.members() if header.batch in known]
        assert len(members) == len(known)
        reports = Counter(envelope.inner for _, found in members for envelope in found)
        people = Counter((envelope.device.public, envelope.round) for _, found in members for envelope in found)
        assert set(reports.values()) <= {1} and set(people.values()) <= {1}, "counted twice"
        assert self.sim.audit.count_miscounted(self.sim.counted) == 0
        return [batch.rounds for batch in self.sim.counted.batches("commute")]

    def states(self) -> dict[int, str]:
        return {round.number: round.state for round in self.sim.store.rounds("commute")}

    def close(self) -> None:
        self.fleet.close()
        self.sim.close()


def everybody(hosts: Hosts, round: int) -> None:
    hosts.report(round, *range(DEVICES))
    hosts.sim.pass_time(PERIOD)


@pytest.mark.exhaust
def test_both_hosts_restored_count_nobody_twice(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path)
    everybody(hosts, 1)
    of_analyzer = hosts.backup("analyzer")
    hosts.report(2, 0, 1, 2, 3)
    of_shuffler = hosts.backup("shuffler")
    hosts.report(2, 4, 5)
    hosts.sim.pass_time(PERIOD)
    assert hosts.counted() == [(1,), (2,)]
    hosts.restore("shuffler", of_shuffler)
    hosts.restore("analyzer", of_analyzer)
    hosts.sim.step()
    assert hosts.states()[2] == "lost"
    everybody(hosts, 3)
    everybody(hosts, 4)
    assert hosts.counted() == [(1,), (3,), (4,)], "round 2 went with the analyzer's host"
    hosts.close()


@pytest.mark.exhaust
@pytest.mark.parametrize("older", [True, False])
def test_a_batch_that_waits_in_a_backup_is_sent_again_and_counts_once(tmp_path: Path, older: bool) -> None:
    hosts = Hosts(tmp_path)
    of_analyzer = hosts.backup("analyzer")
    hosts.fate = "lost"
    everybody(hosts, 1)
    of_shuffler = hosts.backup("shuffler")
    assert hosts.states()[1] == "released" and hosts.counted() == []
    hosts.fate = "arrives"
    hosts.sim.pass_time(300.0)
    assert hosts.counted() == [(1,)]
    hosts.restore("shuffler", of_shuffler)
    if older:
        hosts.restore("analyzer", of_analyzer)
    hosts.sim.step()
    assert hosts.counted() == [(1,)] and hosts.states()[1] == "delivered"
    hosts.close()
