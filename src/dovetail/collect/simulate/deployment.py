"""Shuffler and analyzer as processes of their own, from files in a folder: what an operator does, by program."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

import tomlkit

from dovetail.collect.files import save_keys
from dovetail.collect.http.sockets import bind, url_of
from dovetail.collect.simulate.throwaway_campaign import ThrowawayCampaign
from dovetail.core.errors import OutputError

SECONDS = 60.0  # for a process to end


@dataclass(frozen=True)
class Deployment:
    """A folder with everything that both servers need, and where they are reached.

    Parameters
    ----------
    stores : URLs of the shuffler's and the analyzer's store, or None for files in the folder
    batches : where the shuffler hands its batches over, if not straight to the analyzer
    broker : where the shuffler subscribes, if it does
    """

    folder: Path
    world: ThrowawayCampaign = field(repr=False)
    shuffler: str
    analyzer: str
    token: str = field(repr=False)
    stores: tuple[str | None, str | None] = (None, None)
    batches: str | None = None
    broker: str | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any], folder: Path, *, devices: int, broker: str | None = None) -> Self:
        """A site in an empty folder, on two free ports of the loopback, with fresh keys for everybody."""
        shuffler, analyzer = _free_ports(2)
        endpoints = {"http": shuffler} | _optional("mqtt", broker)
        world = ThrowawayCampaign.of({**document, "endpoints": endpoints}, devices)
        return cls(folder, world, shuffler, analyzer, secrets.token_urlsafe(), broker=broker)

    def write(self) -> None:
        """Keys, campaign, roster, token and configurations, as `dovetail collect` takes them."""
        world, campaign = self.world, self.world.campaign
        try:
            (self.folder / "devices").mkdir(parents=True)
            (self.folder / "campaign.toml").write_bytes(campaign.signed)
            for name, document in (("shuffler", self._shuffler()), ("analyzer", self._analyzer())):
                (self.folder / f"{name}.toml").write_text(tomlkit.dumps(document))
            (self.folder / "token").touch(mode=0o600)
            (self.folder / "token").write_text(self.token + "\n")
            (self.folder / "tokens").write_text(f"{sha256(self.token.encode()).hexdigest()} simulation\n")
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written ({error.strerror}); name a new folder.") from None
        for keys in (world.owner, world.shuffler, world.analyzer):
            save_keys(keys, self.folder / f"{keys.role}.key")
        for slot, keys in enumerate(world.devices):
            save_keys(keys, self.device(slot))
        world.roster().save(self.folder / "roster.csv")

    def device(self, slot: int) -> Path:
        """The key file of a device."""
        return self.folder / "devices" / f"{slot:05d}.key"

    def _shuffler(self) -> dict[str, Any]:
        files = {"keys": "shuffler.key", "vault": "vault", "roster": "roster.csv"}
        places = {"listen": _listen(self.shuffler), "analyzer": self.batches or self.analyzer}
        tables = {"limits": _UNLIMITED} | ({"mqtt": {"url": self.broker}} if self.broker else {})
        return self._shared_settings() | files | places | _optional("store", self.stores[0]) | tables

    def _analyzer(self) -> dict[str, Any]:
        files = {"keys": "analyzer.key", "tokens": "tokens", "public_page": True}
        return (
            self._shared_settings() | files | {"listen": _listen(self.analyzer)} | _optional("store", self.stores[1])
        )

    def _shared_settings(self) -> dict[str, Any]:
        owner = str(self.world.campaign.owner)
        return {"schema_version": 1, "campaigns": ["campaign.toml"], "owner": owner}


_UNLIMITED = {"per_device_per_minute": 1e6}


@dataclass
class ServerProcess:
    """A program that says "<name> at .." once it listens; its log is a file."""

    name: str
    command: Sequence[str]
    log: Path
    running: subprocess.Popen[str] | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin; `ready` waits until it listens."""
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for us, who then stop it in order
            )

    def ready(self) -> None:
        """Wait until it listens."""
        out = None if self.running is None else self.running.stdout
        if out is None or not out.readline().startswith(f"{self.name} at "):
            self.kill()
            said = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            raise OutputError(f"the {self.name} did not start: {said[-1] if said else 'it said nothing.'}")

    def check(self) -> None:
        """Refuse to wait for a process that has ended."""
        if self.running is None or self.running.poll() is not None:
            raise OutputError(f"the {self.name} has ended; its log is {self.log}.")

    def stop(self) -> int:
        """End it in order; its exit status."""
        return self._end(subprocess.Popen.terminate)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(subprocess.Popen.kill)

    def _end(self, how: Callable[[subprocess.Popen[str]], None]) -> int:
        running, self.running = self.running, None
        if running is None:
            return 0
        how(running)
        try:
            return running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            return -1
        finally:  # also when Ctrl-C comes a second time
            running.kill()
            running.communicate()


def server_process(site: Deployment, role: Literal["shuffler", "analyzer"]) -> ServerProcess:
    """One of the servers of a site."""
    config = str(site.folder / f"{role}.toml")
    command = [sys.executable, "-m", "dovetail", "collect", role, config]
    return ServerProcess(role, command, site.folder / f"{role}.log")


@contextmanager
def run_servers(site: Deployment) -> Iterator[Callable[[], None]]:
    """Both servers of a site; stopped at the end, the shuffler first, whatever happens in between.

    Yields a check that they are still running, for whoever waits for them.

    Raises
    ------
    OutputError
        When one of them does not start, has ended by itself, or does not end with status 0.
    """
    servers = (server_process(site, "analyzer"), server_process(site, "shuffler"))
    status = dict[str, int]()
    with ExitStack() as stack:
        for each in servers:
            stack.callback(_stop, each, status)
            each.start()
        for each in servers:
            each.ready()

        def check() -> None:
            for each in servers:
                each.check()

        yield check
    for name, found in status.items():
        if found:
            raise OutputError(f"the {name} ended with status {found}; its log is {site.folder / name}.log.")


def _stop(process: ServerProcess, status: dict[str, int]) -> None:
    status[process.name] = process.stop()


def _listen(url: str) -> str:
    return url.removeprefix("http://")


def _optional(name: str, value: str | None) -> dict[str, str]:
    return {} if value is None else {name: value}


def _free_ports(count: int) -> list[str]:
    """URLs of loopback ports that nobody listens on now."""
    bound = [bind("127.0.0.1:0") for _ in range(count)]
    try:
        return [url_of(port) for port in bound]
    finally:
        for port in bound:
            port.close()
