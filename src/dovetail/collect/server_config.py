"""What the configuration files of both servers share; paths in them are relative to the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dovetail.collect.audit_log import AuditLog, audit_key
from dovetail.collect.files import load_campaign, load_keys
from dovetail.collect.http.sockets import host_of
from dovetail.core.errors import ConfigError, OutputError
from dovetail.pipeline.config.parse import read_toml
from dovetail.pipeline.config.sections import Section
from dovetail_protocol.campaign import Campaign
from dovetail_protocol.endpoint import is_loopback
from dovetail_protocol.keys import Role, RoleKeys, VerifyingKey


class TlsSection(Section):
    """Certificate chain and key, PEM files."""

    certificate: str
    key: str


def tls_files(tls: TlsSection | None, folder: Path) -> dict[str, Path]:
    """The files of a section, as `http.server` takes them; none without a section."""
    return {} if tls is None else {"certificate": folder / tls.certificate, "key": folder / tls.key}


def database_of(path: Path) -> tuple[str, Literal["shuffler", "analyzer"]]:
    """URL and role of the database of a configuration file of either server."""
    found = read_toml(path)
    role: Literal["shuffler", "analyzer"] = "shuffler" if "analyzer" in found else "analyzer"
    store = found.get("store")
    if not isinstance(store, str | None):
        raise ConfigError(f"{path}: `store` must be a URL.")
    return store or f"sqlite:///{path.parent / f'{role}.sqlite'}", role


class ServerConfig(Section):
    """What both servers are told."""

    schema_version: Literal[1]
    campaigns: Annotated[list[str], Field(min_length=1)]
    owner: str | None = None  # the only key whose campaigns are served
    keys: str | Annotated[list[str], Field(min_length=1)]  # several while keys are changed
    listen: str
    store: str | None = None
    tls: TlsSection | None = None
    audit: str | None = None  # folder of the server's audit log, which bears the name of its newest key file
    insecure_http: list[Literal["listen", "analyzer"]] = Field(default_factory=list)  # plain beyond this machine

    def store_url(self, folder: Path, role: str) -> str:
        """Where the server keeps its state; by default in a file beside its configuration."""
        return self.store or f"sqlite:///{folder / f'{role}.sqlite'}"

    def load_campaigns(self, folder: Path) -> list[tuple[Campaign, Path]]:
        """Signed campaigns, each with the folder of its file; with `owner`, only those that this key has signed."""
        pinned = None if self.owner is None else VerifyingKey.parse("owner", self.owner)
        files = [folder / name for name in self.campaigns]
        return [(load_campaign(file, pinned), file.parent) for file in files]

    def require_private(self) -> None:
        """Refuse to answer other machines over plain HTTP, unless the operator answers for it."""
        if self.tls is None and "listen" not in self.insecure_http and not is_loopback(host_of(self.listen)):
            raise ConfigError(
                f"`listen` = {self.listen!r} is plain HTTP for other machines: give [tls], listen on 127.0.0.1 "
                'behind a proxy with TLS, or, where only such a proxy reaches it, say insecure_http = ["listen"].'
            )

    def audit_log(self, folder: Path, keys: Sequence[RoleKeys]) -> AuditLog | None:
        """The audit log of the server's newest keys, in the folder `audit`; None where it keeps none."""
        if self.audit is None:
            return None
        named = self.keys if isinstance(self.keys, str) else self.keys[-1]
        place = folder / self.audit
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"`audit`: {place} cannot be made a folder ({error.strerror}).") from None
        return AuditLog(place / f"{Path(named).name}.audit", audit_key(keys[-1]))

    def load_keys(self, folder: Path, role: Role) -> list[RoleKeys]:
        """The secret keys of the server's role; files of another role are refused."""
        names = [self.keys] if isinstance(self.keys, str) else self.keys
        return [load_keys(folder / name, role) for name in names]
