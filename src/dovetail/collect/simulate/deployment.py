"""Shuffler and analyzer as processes of their own, from files in a folder: what an operator does, by program."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, Self

import tomlkit
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from dovetail.account.dummies import user_dummies_for
from dovetail.collect.campaign.roster import Roster, RosterEntry
from dovetail.collect.files import new_round_key, save_keys, save_round_keys, token_key
from dovetail.collect.http import bind, url_of
from dovetail.core.checks import whole
from dovetail.core.errors import ConfigError, OutputError
from dovetail_protocol.campaign import Campaign, draft, sign
from dovetail_protocol.dummies import Unrandomized
from dovetail_protocol.joint import Drawn
from dovetail_protocol.keys import RoleKeys
from dovetail_protocol.messages import longest_request
from dovetail_protocol.ohttp import MOST_PAD, GatewayKey

# A campaign with throw-away keys for every role: what a simulation, a demo and a load test begin with.


START = datetime(2030, 1, 1, tzinfo=UTC)  # of the first round under a frozen clock
PERIOD = 3600.0  # seconds, of a simulated round

COMMUTE: dict[str, Any] = {
    "schema_version": 1,
    "id": "commute",
    "question": "How do you come to work?",
    "randomizer": {"name": "krr", "k": 4, "epsilon": 2.0, "categories": ["on foot", "bike", "bus or train", "car"]},
    "batch": {"minimum": 100},
    "promise": {"delta": 1e-6},
}
"""The campaign that is simulated where none is given, less its rounds and keys."""

APPLIANCE: dict[str, Any] = {
    "schema_version": 1,
    "id": "appliance",
    "question": "How many watts does the appliance draw?",
    "randomizer": {
        "name": "budget_laplace", "lower": 3.9, "upper": 178.3, "epsilon": 4.5, "beta": 0.5, "rho": 0.9, "grid": 0.2
    },
    "batch": {"minimum": 100},
    "promise": {"delta": 1e-6},
    "precision": {"beta": 0.5, "rho": 0.9},
}  # fmt: skip
"""The fleet of RASE's evaluation: Algorithm 3 with the paper's range, precision and budget."""


def among_people(*, people: int, rounds: int) -> dict[str, Any]:
    """The same question with answers as they are, among dummies of people: epsilon 1 a batch, 9 in 10 honest."""
    honest = people * 9 // 10
    batches_delta = COMMUTE["promise"]["delta"] / rounds
    sent = user_dummies_for(k=COMMUTE["randomizer"]["k"], epsilon=1.0, delta=batches_delta, honest=max(1, honest))
    asked = COMMUTE["randomizer"]
    return COMMUTE | {
        "randomizer": {"name": Unrandomized.name, "k": asked["k"], "categories": asked["categories"]},
        "batch": {"minimum": people},
        "promise": {**COMMUTE["promise"], "trust": "users", "assumed_honest": honest},
        "dummies": {"epsilon": 1.0, "delta": batches_delta, "rate": sent.rate},
    }


def with_tokens(document: Mapping[str, Any], url: str = "https://issuer.example.org") -> dict[str, Any]:
    """The same campaign with tokens of an issuer at `url` instead of a roster; its keys come with all others."""
    promise = {**document.get("promise", {}), "authentication": "token"}
    return {**document, "promise": promise, "tokens": {"issuer": "issuer.example.org", "url": url}}


def among_classes(classes: Mapping[str, float]) -> dict[str, Any]:
    """The same question to people who choose among these epsilons."""
    return COMMUTE | {
        "randomizer": COMMUTE["randomizer"] | {"epsilon": max(classes.values(), default=0.0)},
        "classes": dict(classes),
    }


@dataclass(frozen=True)
class ThrowawayCampaign:
    """Keys of every role and the campaign that names them."""

    campaign: Campaign
    owner: RoleKeys
    shuffler: RoleKeys
    analyzer: RoleKeys
    devices: tuple[RoleKeys, ...] = field(repr=False)
    round_keys: tuple[RSAPrivateKey, ...] = field(default=(), repr=False)  # the issuer's, where devices show tokens

    @classmethod
    def of(cls, document: Mapping[str, Any], devices: int) -> Self:
        """Fresh keys for a campaign file given without keys.

        Rounds, the device's budget and the uniform shuffle have defaults: ten rounds of an hour, paid in full.
        """
        whole("devices", devices, least=1)
        suite = document.get("keys", {}).get("suite", "x25519")
        owner = RoleKeys.generate("owner")
        shuffler, analyzer = (RoleKeys.generate(role, suite) for role in ("shuffler", "analyzer"))
        assert owner.signing and shuffler.opening and shuffler.signing and analyzer.opening
        keys = {
            "suite": suite,
            "owner": str(owner.signing.verifying_key()),
            "shuffler": str(shuffler.opening.sealing_key()),
            "shuffler_signing": str(shuffler.signing.verifying_key()),
            "analyzer": str(analyzer.opening.sealing_key()),
        }
        tables = _complete(document) | {"keys": keys}
        sold: list[RSAPrivateKey] = []
        if "tokens" in document:
            sold = [new_round_key() for _ in range(tables["rounds"]["count"])]
            tables["tokens"] = {**document["tokens"], "keys": [str(token_key(key)) for key in sold]}
        campaign = Campaign.parse(sign(tomlkit.dumps(tables).encode(), owner.signing))
        people = tuple(RoleKeys.generate("device") for _ in range(devices))
        return cls(campaign, owner, shuffler, analyzer, people, tuple(sold))

    def roster(self) -> Roster:
        """Every device in the slot of its number."""
        keys = [device.signing for device in self.devices]
        return Roster(RosterEntry(key.verifying_key(), slot) for slot, key in enumerate(keys) if key is not None)


def schedule(count: int, *, period: float = PERIOD, grace: float = 0.0, start: datetime = START) -> dict[str, Any]:
    """The table of so many rounds of `period` seconds."""
    times = {"start": start, "period_seconds": period, "count": count, "grace_seconds": grace}
    return {"schedule": "period", **times}


def _complete(document: Mapping[str, Any]) -> dict[str, Any]:
    rounds = document.get("rounds") or schedule(10)
    priced = document["dummies" if document["randomizer"]["name"] == Unrandomized.name else "randomizer"]
    each = [Fraction(repr(one["epsilon"])) for one in priced.get("parts", [priced])]
    spent = max(each) if priced.get("name") == Drawn.name else sum(each)
    budget = float(spent * (1 if "memoize" in document else rounds["count"]))
    return {
        "shuffle": {"shuffler": "uniform"},
        **document,
        "rounds": rounds,
        "promise": {"device_budget": budget, **document.get("promise", {})},
    }


def simulated_document(path: Path, *, rounds: int) -> dict[str, Any]:
    """Somebody's campaign file for a simulation: its rules with other keys, over `rounds` rounds.

    A schedule by hand becomes one by the clock, because nobody is there to close rounds; endpoints and expiry go.
    """
    campaign = draft(_read(path))
    if campaign.order_private:
        raise ConfigError(
            f"{path}: simulate takes campaigns with a uniform shuffle; this one needs its public table."
        )
    found = tomllib.loads(campaign.signed.decode())
    kept = {key: value for key, value in found.items() if key not in ("expires", "endpoints", "keys", "ohttp")}
    rounds_table = schedule(rounds, period=campaign.schedule.period or PERIOD, grace=campaign.schedule.grace)
    return kept | {"rounds": rounds_table, "keys": {"suite": campaign.analyzer.suite}}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise ConfigError(f"{path}: no such campaign file.") from None


SECONDS = 60.0  # for a process to end


@dataclass(frozen=True)
class Deployment:
    """A folder with everything that both servers need, and where they are reached.

    Parameters
    ----------
    stores : URLs of the shuffler's and the analyzer's store, or None for files in the folder
    batches : where the shuffler hands its batches over, if not straight to the analyzer
    broker : where the shuffler subscribes, if it does
    apart : who else there is, where devices show tokens and send by a relay
    """

    folder: Path
    world: ThrowawayCampaign = field(repr=False)
    shuffler: str
    analyzer: str
    token: str = field(repr=False)
    stores: tuple[str | None, str | None] = (None, None)
    batches: str | None = None
    broker: str | None = None
    apart: IssuerAndRelay | None = None

    @classmethod
    def of(
        cls,
        document: Mapping[str, Any],
        folder: Path,
        *,
        devices: int,
        broker: str | None = None,
        tokens: bool = False,
    ) -> Self:
        """A site in an empty folder, on free ports of the loopback, with fresh keys for everybody.

        tokens : devices ask an issuer for tokens, and send by a relay alone.
        """
        shuffler, analyzer, issuer, relay = _free_ports(4)
        if tokens:
            apart = IssuerAndRelay(issuer, relay)
            world = ThrowawayCampaign.of(apart.named_in(document), devices)
            return cls(folder, world, shuffler, analyzer, secrets.token_urlsafe(), apart=apart)
        endpoints = {"http": shuffler} | _optional("mqtt", broker)
        world = ThrowawayCampaign.of({**document, "endpoints": endpoints}, devices)
        return cls(folder, world, shuffler, analyzer, secrets.token_urlsafe(), broker=broker)

    @property
    def roles(self) -> tuple[ServerRole, ...]:
        """Who runs here, in the order in which they are started."""
        return ("analyzer", "shuffler") if self.apart is None else ("analyzer", "shuffler", "issuer", "relay")

    def write(self) -> None:
        """Keys, campaign, roster, token and configurations, as `dovetail collect` takes them."""
        world, campaign = self.world, self.world.campaign
        try:
            (self.folder / "devices").mkdir(parents=True)
            (self.folder / "campaign.toml").write_bytes(campaign.signed)
            documents = {"shuffler": self._shuffler(), "analyzer": self._analyzer()}
            if self.apart is not None:
                documents["issuer"] = self._shared_settings() | self.apart.settings()
            for name, document in documents.items():
                (self.folder / f"{name}.toml").write_text(tomlkit.dumps(document))
            (self.folder / "token").touch(mode=0o600)
            (self.folder / "token").write_text(self.token + "\n")
            (self.folder / "tokens").write_text(f"{sha256(self.token.encode()).hexdigest()} simulation\n")
        except OSError as error:
            raise OutputError(f"{self.folder}: cannot be written ({error.strerror}); name a new folder.") from None
        if self.apart is not None:
            for keys in (self.apart.gateway, self.apart.issuer_keys):
                save_keys(keys, self.folder / f"{keys.role}.key")
            list(save_round_keys(world.round_keys, self.folder / "issuer-keys"))
        for keys in (world.owner, world.shuffler, world.analyzer):
            save_keys(keys, self.folder / f"{keys.role}.key")
        for slot, keys in enumerate(world.devices):
            save_keys(keys, self.device(slot))
        world.roster().save(self.folder / "roster.csv")

    def device(self, slot: int) -> Path:
        """The key file of a device."""
        return self.folder / "devices" / f"{slot:05d}.key"

    def _shuffler(self) -> dict[str, Any]:
        files: dict[str, Any] = {"keys": "shuffler.key", "vault": "vault"}
        files |= {"roster": "roster.csv"} if self.apart is None else {"gateway": ["gateway.key"]}
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
ServerRole = Literal["analyzer", "shuffler", "issuer", "relay"]


@dataclass(frozen=True)
class IssuerAndRelay:
    """Who stands between devices and the shuffler, so that it learns neither names nor addresses."""

    issuer: str  # their URLs
    relay: str
    gateway: RoleKeys = field(default_factory=lambda: RoleKeys.generate("gateway"), repr=False)
    issuer_keys: RoleKeys = field(default_factory=lambda: RoleKeys.generate("issuer"), repr=False)
    store: str | None = None  # URL of the issuer's, or None for a file in the folder

    def named_in(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The campaign with both of them in it."""
        assert self.gateway.opening
        route = {"relay": self.relay, "keys": [str(GatewayKey.of(self.gateway.opening))], "pad": MOST_PAD}
        named = with_tokens(document, self.issuer) | {"ohttp": route}
        longest = longest_request(
            ThrowawayCampaign.of(named | {"rounds": {"schedule": "manual", "count": 1}}, 1).campaign
        )
        return named | {"ohttp": route | {"pad": -(-longest // 64) * 64}}

    def settings(self) -> dict[str, Any]:
        """The issuer's own part of its configuration."""
        files = {"keys": "issuer.key", "round_keys": "issuer-keys", "roster": "roster.csv"}
        return files | {"listen": _listen(self.issuer)} | _optional("store", self.store)


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


def server_process(site: Deployment, role: ServerRole) -> ServerProcess:
    """One of the servers of a site."""
    given = [str(site.folder / f"{role}.toml")]
    if role == "relay" and site.apart is not None:
        given = ["--gateway", f"{site.shuffler}/ohttp", "--listen", _listen(site.apart.relay)]
    command = [sys.executable, "-m", "dovetail", "collect", role, *given]
    return ServerProcess(role, command, site.folder / f"{role}.log")


@contextmanager
def run_servers(site: Deployment) -> Iterator[Callable[[], None]]:
    """All servers of a site; stopped at the end, the analyzer last, whatever happens in between.

    Yields a check that they are still running, for anybody who waits for them.

    Raises
    ------
    OutputError
        When one of them does not start, has ended by itself, or does not end with status 0.
    """
    servers = [server_process(site, role) for role in site.roles]
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
