"""Changing the keys of a campaign, as changes of files: its next version, and what a configuration names."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import tomlkit

from dovetail.collect.files import load_campaign, load_keys
from dovetail.core.errors import ConfigError, DovetailError, OutputError
from dovetail_protocol.campaign import SIGNED, Campaign
from dovetail_protocol.keys import Role, RoleKeys
from dovetail_protocol.succession import HandOver

UNTIL = "older_versions_until"


def next_version(campaign: Campaign, keys: Mapping[str, str], *, hand_over: HandOver | None = None) -> bytes:
    """The next version of a campaign, to be signed: other `keys` by their names in [keys], every comment kept."""
    document: Any = tomlkit.parse(campaign.signed.rpartition(SIGNED)[0].decode())
    document["version"] = campaign.version + 1
    named = dict(keys) if hand_over is None else {**keys, "owner": str(hand_over.new)}
    for name, key in named.items():
        document["keys"][name] = key
    document["keys"]["suite"] = str(document["keys"]["analyzer"]).partition(":")[0]
    body = str(tomlkit.dumps(document)).encode()
    if not body.endswith(b"\n"):
        body += b"\n"
    return body if hand_over is None else body + hand_over.line()


@dataclass(frozen=True)
class ServerFile:
    """The configuration file of a server, of which only campaigns and keys are read."""

    path: Path
    document: Any  # TOML with its comments

    @classmethod
    def read(cls, path: Path) -> ServerFile:
        """Refused where it names no campaigns and keys."""
        try:
            document = tomlkit.parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"{path}: no such configuration.") from None
        except (OSError, ValueError):
            raise ConfigError(f"{path}: no configuration in TOML that can be read.") from None
        if not isinstance(document.get("campaigns"), list) or not isinstance(document.get("keys"), str | list):
            raise ConfigError(f"{path}: names no `campaigns` and `keys`; is it the configuration of a server?")
        return cls(path, document)

    @property
    def campaigns(self) -> list[Path]:
        """Its campaign files."""
        return [self.path.parent / str(name) for name in self.document["campaigns"]]

    @property
    def keys(self) -> list[Path]:
        """Its key files, the newest last."""
        named = self.document["keys"]
        return [self.path.parent / str(name) for name in ([named] if isinstance(named, str) else named)]

    @property
    def until(self) -> datetime | None:
        """Until when it takes older versions, if it says so."""
        found = self.document.get(UNTIL)
        return found if isinstance(found, datetime) else None

    def role(self) -> Role:
        """Whose server it is, as its keys say."""
        try:
            found = tomllib.loads(self.keys[-1].read_text())["role"]
        except (OSError, ValueError, KeyError, IndexError):
            raise ConfigError(f"{self.path}: `keys` names no key file that can be read.") from None
        if found not in ("shuffler", "analyzer"):
            raise ConfigError(f"{self.path}: `keys` must be those of a shuffler or an analyzer.")
        return "shuffler" if found == "shuffler" else "analyzer"

    def load(self) -> tuple[list[Campaign], list[RoleKeys]]:
        """Campaigns and keys that it names."""
        role = self.role()
        return [load_campaign(path) for path in self.campaigns], [load_keys(path, role) for path in self.keys]

    def write(self, *, campaigns: Sequence[Path], keys: Sequence[Path], until: datetime | None = None) -> None:
        """Replace the file at once or not at all, with other campaigns and keys; comments and modes stay."""
        self.document["campaigns"] = [self._name(path) for path in campaigns]
        self.document["keys"] = [self._name(path) for path in keys]
        self.document.pop(UNTIL, None)
        text = tomlkit.dumps(self.document)
        if until is not None:  # before the first table, where keys of the top stand
            text = f"{UNTIL} = {until:%Y-%m-%dT%H:%M:%SZ}\n{text}"
        scratch = self.path.with_name(f".{self.path.name}.new")
        try:
            scratch.write_text(text, encoding="utf-8")
            scratch.chmod(self.path.stat().st_mode & 0o777)
            scratch.replace(self.path)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise OutputError(f"{self.path}: cannot be written ({error.strerror}); nothing was changed.") from None

    def _name(self, path: Path) -> str:
        return os.path.relpath(path, self.path.parent)


def free_name(path: Path) -> Path:
    """The next free name of a key file: `shuffler.key`, `shuffler-2.key`, `shuffler-3.key`.

    >>> free_name(Path("none/shuffler-2.key")).name
    'shuffler-3.key'
    """
    stem, _, number = path.stem.rpartition("-")
    first, base = (int(number), stem) if stem and number.isdigit() else (1, path.stem)
    while (found := path.with_name(f"{base}-{(first := first + 1)}{path.suffix}")).exists():
        pass
    return found


def newest_versions(campaigns: Mapping[Path, Campaign]) -> dict[Path, Campaign]:
    """The files of the newest version of each campaign."""
    newest = {campaign.id: campaign.version for campaign in sorted(campaigns.values(), key=lambda each: each.version)}
    return {path: campaign for path, campaign in campaigns.items() if campaign.version == newest[campaign.id]}


def opens(keys: RoleKeys, campaign: Campaign) -> bool:
    """Whether a campaign names these keys of a server."""
    sealing = None if keys.opening is None else keys.opening.sealing_key()
    return sealing == (campaign.shuffler if keys.role == "shuffler" else campaign.analyzer)


def destroy(path: Path) -> None:
    """Overwrite a key file and take it away; what a disk or a backup keeps of it is out of reach here."""
    try:
        with path.open("r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
    except OSError as error:
        raise OutputError(f"{path}: cannot be destroyed ({error.strerror}).") from None


def read_hand_over(path: Path) -> HandOver:
    """The hand-over of a file, with one-line errors that name it."""
    try:
        return HandOver.parse(path.read_bytes().rstrip(b"\n"))
    except OSError:
        raise ConfigError(f"{path}: no hand-over that can be read.") from None
    except DovetailError as error:
        raise ConfigError(f"{path}: {error}") from None
