"""Changes of both servers' keys in the middle of a soak, step by step as docs/collect.md has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import tomlkit

from dovetail.collect.files import save_keys
from dovetail.collect.simulate.delivery_audit import DeliveryAudit
from dovetail.collect.simulate.deployment import Deployment, ServerProcess
from dovetail_protocol.campaign import Campaign, sign
from dovetail_protocol.keys import RoleKeys


def newer(campaign: Campaign, shuffler: RoleKeys, analyzer: RoleKeys, owner: RoleKeys) -> Campaign:
    """The next version of a campaign, with other keys and nothing else."""
    document = tomlkit.parse(campaign.signed[: campaign.signed.rindex(b"# signed: ")].decode())
    assert shuffler.opening and shuffler.signing and analyzer.opening and owner.signing
    document["version"] = campaign.version + 1
    document["keys"]["shuffler"] = str(shuffler.opening.sealing_key())  # type: ignore[index]
    document["keys"]["shuffler_signing"] = str(shuffler.signing.verifying_key())  # type: ignore[index]
    document["keys"]["analyzer"] = str(analyzer.opening.sealing_key())  # type: ignore[index]
    return Campaign.parse(sign(tomlkit.dumps(document).encode(), owner.signing))


@dataclass
class KeyChanges:
    """The operator who changes keys; both servers must stop in order when they are asked to."""

    site: Deployment
    audit: DeliveryAudit
    analyzer: ServerProcess
    shuffler: ServerProcess
    campaigns: list[Campaign] = field(init=False)

    def __post_init__(self) -> None:
        self.campaigns = [self.site.world.campaign]

    def begin(self) -> None:
        """Steps 1 to 3: new keys, a newer file, and both servers take both."""
        keys = {role: RoleKeys.generate(role) for role in ("shuffler", "analyzer")}  # type: ignore[arg-type]
        found = newer(self.campaigns[-1], keys["shuffler"], keys["analyzer"], self.site.world.owner)
        assert keys["shuffler"].opening
        self.audit.follow(found, keys["shuffler"].opening)
        (self.site.folder / f"campaign-{found.version}.toml").write_bytes(found.signed)
        for role, made in keys.items():
            save_keys(made, self.site.folder / f"{role}-{found.version}.key")
        self.campaigns.append(found)
        for process in (self.analyzer, self.shuffler):
            self._serve(process, campaigns=_files(self.campaigns, "campaign", "toml"))

    def end(self) -> None:
        """Step 4: the shuffler takes the newest only."""
        self._serve(self.shuffler, campaigns=_files(self.campaigns, "campaign", "toml")[-1:])

    def _serve(self, process: ServerProcess, *, campaigns: list[str]) -> None:
        path = self.site.folder / f"{process.name}.toml"
        document = tomlkit.parse(path.read_text())
        document["campaigns"] = campaigns
        document["keys"] = _files(self.campaigns, process.name, "key")
        _replace(path, tomlkit.dumps(document))
        status = process.stop()
        if status:
            raise AssertionError(f"the {process.name} ended with status {status}")
        process.start()
        process.ready()


def planned(changes: KeyChanges, *, kills: int, rotations: int) -> dict[int, Callable[[], None]]:
    """Before which kill each half of each change is made: evenly spread, with kills in between."""
    places = [(2 * number + 1) * kills // (2 * rotations + 1) for number in range(rotations)] if rotations else []
    halves = dict.fromkeys(places, changes.begin)
    return halves | {place + max(1, kills // (2 * rotations + 1)): changes.end for place in places}


def _files(campaigns: list[Campaign], name: str, kind: str) -> list[str]:
    return [f"{name}.{kind}" if each.version == 1 else f"{name}-{each.version}.{kind}" for each in campaigns]


def _replace(path: Path, text: str) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(path)
