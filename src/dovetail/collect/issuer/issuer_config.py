"""The issuer's configuration file, and the issuer that it describes."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from dovetail.collect.campaign.roster import LiveRoster
from dovetail.collect.files import ServerConfig, secret_line
from dovetail.collect.issuer.issuer import AHEAD, Entitlement, IssuerRole, of_accounts, of_invitations, of_roster
from dovetail.collect.issuer.signing import load_round_keys
from dovetail.collect.store.engine import in_memory
from dovetail.collect.store.issuer_store import open_issuer_store
from dovetail.core.errors import ConfigError
from dovetail.table.data_section import parse_section, read_toml
from dovetail_protocol.tokens import MOST_ROUNDS

_LEAST = 32  # characters of the secret that is shared with a site


class IssuerConfig(ServerConfig):
    """`issuer.toml`; paths in it are relative to the file. One of `roster`, `invitations`, `accounts` is named."""

    listen: str = "127.0.0.1:8404"
    round_keys: str = "issuer-keys"
    roster: str | None = None
    invitations: str | None = None  # the folder of invitations.csv
    accounts: str | None = None  # a file with the secret that is shared with the site whose accounts they are
    ahead: Annotated[int, Field(ge=0, le=MOST_ROUNDS)] = AHEAD

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(kind is not None for kind in (self.roster, self.invitations, self.accounts)) != 1:
            raise ValueError("one of `roster`, `invitations` and `accounts` says who is entitled")
        return self


def load(path: Path) -> IssuerConfig:
    """Read and check a configuration; errors name the file and the key."""
    return parse_section(IssuerConfig, read_toml(path), name=str(path))


def assemble(config: IssuerConfig, folder: Path) -> IssuerRole:
    """The issuer of a configuration in `folder`."""
    config.require_private()
    keys = config.load_keys(folder, "issuer")
    if len(keys) != 1 or keys[0].signing is None:
        raise ConfigError("`keys` names the issuer's one key file: under another, everybody could ask once more.")
    url = config.store_url(folder, "issuer")
    if in_memory(url):
        raise ConfigError(
            "`store` is in memory: after a restart everybody could ask once more. Name a file or a server."
        )
    audit = config.audit_log(folder, keys)
    campaigns = [campaign for campaign, _ in config.load_campaigns(folder)]
    issuer = IssuerRole(
        campaigns,
        store=open_issuer_store(url),
        signers=load_round_keys(folder / config.round_keys),
        entitled=_entitled(config, folder),
        secret=hmac.digest(keys[0].signing.secret, b"dovetail issuer names v1\0", "sha256"),
        ahead=config.ahead,
        signing=keys[0].signing,
    )
    if audit is not None:
        audit.append("server started", role="issuer", count=len(campaigns))
    return issuer


def _entitled(config: IssuerConfig, folder: Path) -> Entitlement:
    if config.roster is not None:
        return of_roster(LiveRoster(folder / config.roster))
    if config.invitations is not None:
        return of_invitations(folder / config.invitations)
    secret = secret_line(folder / str(config.accounts), "the secret that is shared with the site")
    if len(secret) < _LEAST:
        raise ConfigError(f"`accounts`: the shared secret has at least {_LEAST} characters.")
    return of_accounts(secret.encode())
