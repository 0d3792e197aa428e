"""The shuffler's configuration file, and the shuffler that it describes."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Annotated, Self

from pydantic import AwareDatetime, Field, model_validator

from dovetail.collect.campaign.roster import LiveRoster
from dovetail.collect.campaign.terms import fit
from dovetail.collect.clock import Clock, SystemClock
from dovetail.collect.files import ServerConfig, load_keys, secret_line
from dovetail.collect.shuffler.campaigns import CampaignRegistry
from dovetail.collect.shuffler.delivery import HttpAnalyzerTransport
from dovetail.collect.shuffler.link_key_store import FileLinkKeyStore
from dovetail.collect.shuffler.mqtt import MqttSubscriber
from dovetail.collect.shuffler.service import ShufflerService
from dovetail.collect.shuffler.shuffler import ShufflerRole, ShufflerSettings
from dovetail.collect.shuffler.trusted_clock import ClockLimits
from dovetail.collect.store.shuffler_store import open_shuffler_store
from dovetail.core.entropy import system_entropy
from dovetail.core.errors import ConfigError
from dovetail.table.data_section import Section, parse_section, read_toml
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.endpoint import MQTT_PORTS, place_of, require_private
from dovetail_protocol.messages import require_room
from dovetail_protocol.ohttp import Gateway


class MqttSection(Section):
    """The broker; with a password the user must be named."""

    url: str
    user: str | None = None
    password_file: str | None = None
    session: str = "mqtt.session"
    insecure_mqtt: bool = False  # plain MQTT beyond this machine

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.password_file is not None and self.user is None:
            raise ValueError("`password_file` goes with `user`")
        return self


class LimitsSection(Section):
    """Limits on what senders may ask for."""

    per_device_per_minute: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60.0
    megabytes_under_way: Annotated[int, Field(ge=1)] = 64


class ClockSection(Section):
    """Limits on a clock: its step against the seconds that passed, and how long the service may be away."""

    largest_step_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 300.0
    longest_outage_days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 7.0


class RetentionSection(Section):
    """How long digests of report ids are kept, which recognise retries."""

    days: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 90.0


class ReleaseSection(Section):
    """Batches of more than `part_reports` reports are built and sent in parts; without it, all in one piece.

    Where a device sends two entries, each counts. `parts_at_once` are on their way, and in memory, at the same time.
    """

    part_reports: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    parts_at_once: Annotated[int, Field(ge=1, le=16)] = 1


class ShufflerConfig(ServerConfig):
    """`shuffler.toml`; paths in it are relative to the file."""

    vault: str = "vault"
    roster: str | None = None
    listen: str = "127.0.0.1:8401"
    analyzer: str
    older_versions_until: AwareDatetime | None = None  # while keys are changed
    mqtt: MqttSection | None = None
    gateway: list[str] = Field(default_factory=list)  # key files of the oblivious gateway, the newest last
    limits: LimitsSection = LimitsSection()
    retention: RetentionSection = RetentionSection()
    clock: ClockSection = ClockSection()
    release: ReleaseSection = ReleaseSection()


def load(path: Path) -> ShufflerConfig:
    """Read and check a configuration; errors name the file and the key."""
    return parse_section(ShufflerConfig, read_toml(path), name=str(path))


def assemble(
    config: ShufflerConfig, folder: Path, clock: Clock | None = None
) -> tuple[ShufflerService, list[MqttSubscriber]]:
    """The service of a configuration in `folder`, and its subscription to a broker if there is one."""
    config.require_private()
    place_of("analyzer", config.analyzer, ("http", "https"))
    require_private("analyzer", config.analyzer, insecure="analyzer" in config.insecure_http)
    if config.mqtt is not None:
        place_of("mqtt.url", config.mqtt.url, tuple(MQTT_PORTS))
        require_private("mqtt.url", config.mqtt.url, insecure=config.mqtt.insecure_mqtt)
    campaigns = config.load_campaigns(folder)
    keys = config.load_keys(folder, "shuffler")
    gateway = _gateway(config, folder, [campaign for campaign, _ in campaigns])
    audit = config.audit_log(folder, keys)
    registry = CampaignRegistry.of(
        [campaign for campaign, _ in campaigns],
        keys,
        older_until=inf if config.older_versions_until is None else config.older_versions_until.timestamp(),
    )
    fits = {campaign.id: fit(campaign, place) for campaign, place in campaigns}
    roster = None if config.roster is None else LiveRoster(folder / config.roster)
    shuffler = ShufflerRole(
        registry,
        store=open_shuffler_store(config.store_url(folder, "shuffler")),
        link_keys=FileLinkKeyStore(folder / config.vault),
        transport=HttpAnalyzerTransport(config.analyzer),
        roster=None if roster is None else roster.current,
        roster_fault=str if roster is None else lambda: roster.fault,
        fitted={id: fitted for id, fitted in fits.items() if fitted is not None},
        settings=ShufflerSettings(
            config.limits.per_device_per_minute,
            config.retention.days,
            config.release.part_reports,
            config.release.parts_at_once,
        ),
        audit=audit,
        rng=system_entropy(),
    )
    shuffler.claim()  # here and not in the server's start, so that the reason is told
    if audit is not None:
        audit.append("server started", role="shuffler", count=len(campaigns))
    service = ShufflerService(
        shuffler,
        clock or SystemClock(),
        limits=ClockLimits(config.clock.largest_step_seconds, config.clock.longest_outage_days),
        under_way=config.limits.megabytes_under_way << 20,
        gateway=gateway,
    )
    return service, _subscribers(config, folder, service)


def _gateway(config: ShufflerConfig, folder: Path, campaigns: list[Campaign]) -> Gateway | None:
    """The gateway of the keys in `gateway`; a campaign whose relay would lead to no key is refused."""
    found = [load_keys(folder / name, "gateway").opening for name in config.gateway]
    gateway = Gateway.of(key for key in found if key is not None) if found else None
    held = () if gateway is None else {public for public, _ in gateway.keys}
    for campaign in campaigns:
        require_room(campaign)
        if campaign.ohttp is not None and campaign.ohttp.keys[-1] not in held:
            raise ConfigError(
                f"devices of the campaign {campaign.id} seal to a gateway key that `gateway` does not hold; name its "
                "key file there."
            )
    return gateway


def _subscribers(config: ShufflerConfig, folder: Path, service: ShufflerService) -> list[MqttSubscriber]:
    if config.mqtt is None:
        return []
    secret = config.mqtt.password_file
    password = None if secret is None else secret_line(folder / secret, "a password")
    session = folder / config.mqtt.session
    return [MqttSubscriber(service, config.mqtt.url, session=session, user=config.mqtt.user, password=password)]
