"""What the configuration files of both servers share; paths in them are relative to the file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dovetail.pipeline.sections import Section
from dovetail_device.campaign import Campaign
from dovetail_device.keys import VerifyingKey


class TlsSection(Section):
    """Certificate chain and key, PEM files."""

    certificate: str
    key: str


def tls_files(tls: TlsSection | None, folder: Path) -> dict[str, Path]:
    """The files of a section, as `web.run` takes them; none without a section."""
    return {} if tls is None else {"certificate": folder / tls.certificate, "key": folder / tls.key}


def load_campaigns(names: Iterable[str], owner: str | None, folder: Path) -> list[tuple[Campaign, Path]]:
    """Signed campaigns, each with the folder of its file; with `owner`, only those that this key has signed."""
    pinned = None if owner is None else VerifyingKey.parse("owner", owner)
    files = [folder / name for name in names]
    return [(Campaign.load(file, pinned), file.parent) for file in files]
