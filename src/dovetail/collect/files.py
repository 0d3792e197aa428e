"""Files that the servers and the owner read and write by name: campaigns, keys, passwords."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from stat import S_IMODE
from typing import Annotated, Any, Literal

import tomlkit
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from pydantic import Field

from dovetail.collect.http import host_of
from dovetail.collect.logs import AuditLog, audit_key
from dovetail.ledger.files import replace_durably, sync
from dovetail.table.data_section import Section
from dovetail_protocol.campaign import SIGNED, Campaign
from dovetail_protocol.endpoint import is_loopback
from dovetail_protocol.errors import ConfigError, DovetailError, OutputError
from dovetail_protocol.keys import Role, RoleKeys, VerifyingKey
from dovetail_protocol.succession import HandOver
from dovetail_protocol.tokens import TokenKey


def load_campaign(path: Path, owner: VerifyingKey | None = None) -> Campaign:
    """The verified campaign of a file, with one-line errors that name it."""
    try:
        return Campaign.parse(path.read_bytes(), owner)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such campaign file.") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from None
    except DovetailError as error:
        raise ConfigError(f"{path}: {error}") from None


def save_keys(keys: RoleKeys, path: Path) -> None:
    """Write a file that only its owner can read; an existing file is refused, because keys are not replaced."""
    save_secret(keys.to_text(), path)


def save_secret(content: str, path: Path) -> None:
    """Write a new file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise OutputError(f"{path} exists; keys are never overwritten, choose another name.") from None
    except OSError as error:
        raise OutputError(f"{path}: cannot be written ({error.strerror}).") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync(path.parent)  # what is sealed for these keys must open after a power cut


def load_keys(path: Path, role: Role) -> RoleKeys:
    """The keys of `role`; a file of another role, or one that anybody but its owner may open, is refused."""
    try:
        content, mode = _read(path)
    except FileNotFoundError:
        maker = "dovetail-device keys" if role == "device" else "dovetail collect keys"
        raise ConfigError(f"{path}: no such key file; `{maker}` makes one.") from None
    except PermissionError:
        raise ConfigError(f"{path}: this user must not read it; run as the user that owns the key.") from None
    except (ValueError, OSError):
        raise ConfigError(f"{path} is not a key file that can be read.") from None
    keys = RoleKeys.parse(content, name=str(path), role=role)
    _require_private(path, mode)
    return keys


def read_secret(path: Path, what: str) -> str:
    """The text of a file that nobody else can read, such as "a key"; no error repeats it."""
    try:
        content, mode = _read(path)
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path}: no file with {what} that can be read.") from None
    _require_private(path, mode)
    return content


def secret_line(path: Path, what: str) -> str:
    """The only line of such a file."""
    lines = read_secret(path, what).splitlines()
    if len(lines) != 1 or not lines[0].strip():
        raise ConfigError(f"{path} must hold {what} in one line, and nothing else.")
    return lines[0].strip()


def _read(path: Path) -> tuple[str, int]:
    """Text and mode of the very file that was read, whatever takes its name meanwhile."""
    with path.open(encoding="utf-8") as file:
        return file.read(), os.fstat(file.fileno()).st_mode


def _require_private(path: Path, mode: int) -> None:
    """Refuse a secret that others may open; where permissions are no bits of the file, as on Windows, say nothing."""
    if os.name == "posix" and mode & 0o177:
        raise ConfigError(
            f"{path} has mode {S_IMODE(mode):04o}, which is wider than 0600; make it private with chmod 600."
        )


# The keys of an issuer's rounds: RSA, one for each, in a folder of PEM files.

ROUND_BITS, ROUND_EXPONENT = 2048, 65537


def new_round_key() -> RSAPrivateKey:
    """A key for one round."""
    return generate_private_key(ROUND_EXPONENT, ROUND_BITS)


def make_round_keys(folder: Path, count: int) -> Iterator[TokenKey]:
    """New keys in a new folder, one for each round; the public halves in the order of the rounds."""
    return save_round_keys((new_round_key() for _ in range(count)), folder)


def save_round_keys(keys: Iterable[RSAPrivateKey], folder: Path) -> Iterator[TokenKey]:
    """Write keys, in the order of their rounds, into a new folder; the public halves."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise OutputError(f"{folder} exists; keys are never overwritten, choose another name.") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be made ({error.strerror}).") from None
    sync(folder.parent)
    for number, made in enumerate(keys, 1):
        pem = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        save_secret(pem.decode(), folder / f"round-{number:04d}.pem")
        yield token_key(made)


def token_key(key: RSAPrivateKey) -> TokenKey:
    """The public half, as a campaign names it."""
    return TokenKey(key.public_key().public_numbers().n.to_bytes(ROUND_BITS // 8))


# What the configuration files of both servers share; paths in them are relative to the file.


class TlsSection(Section):
    """Certificate chain and key, PEM files."""

    certificate: str
    key: str


def tls_files(tls: TlsSection | None, folder: Path) -> dict[str, Path]:
    """The files of a section, as `http.server` takes them; none without a section."""
    return {} if tls is None else {"certificate": folder / tls.certificate, "key": folder / tls.key}


class ServerConfig(Section):
    """Configuration that both servers read."""

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


# Changing the keys of a campaign, as changes of files: its next version, and what a configuration names.


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
        replace_durably(self.path, text.encode())

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
    """True if a campaign names these keys of a server."""
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
