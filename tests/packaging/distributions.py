"""Both distributions, built as they would be published, and what has to lie in them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Distribution:
    """A distribution of this repository: its folder, its name in file names and the packages that it brings."""

    folder: Path
    name: str
    packages: tuple[str, ...]

    def build(self, out: Path) -> tuple[Path, Path]:
        """The source archive, and the wheel that is built from it alone."""
        subprocess.run([sys.executable, "-m", "build", "--outdir", out, self.folder], check=True, capture_output=True)
        (archive,), (wheel,) = out.glob(f"{self.name}-*.tar.gz"), out.glob(f"{self.name}-*.whl")
        return archive, wheel


BOTH = (
    Distribution(ROOT / "device", "dovetail_device", ("dovetail_device", "dovetail_protocol")),
    Distribution(ROOT, "dovetail_privacy", ("dovetail",)),
)


def missing(names: Collection[str], packages: Collection[str]) -> list[str]:
    """What a wheel lacks: the licence, the marks of typed packages, or a description of itself."""
    wanted = [".dist-info/licenses/LICENSE", ".dist-info/METADATA", *(f"{package}/py.typed" for package in packages)]
    return [ending for ending in wanted if not any(name.endswith(ending) for name in names)]


def foreign(names: Collection[str], packages: Collection[str]) -> list[str]:
    """What lies in a wheel and belongs to none of its packages: it would land in everybody's site-packages."""
    return [name for name in names if name.split("/")[0] not in packages and ".dist-info" not in name.split("/")[0]]


def faults(distribution: Distribution, archive: Path, wheel: Path) -> list[str]:
    """One line for each thing that is wrong with what was built."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    found = [f"{wheel.name} lacks {name}" for name in missing(names, distribution.packages)]
    found += [f"{wheel.name} brings {name}" for name in foreign(names, distribution.packages)]
    with tarfile.open(archive) as opened_archive:
        kept = {name.partition("/")[2] for name in opened_archive.getnames()}
    return found + [f"{archive.name} lacks {name}" for name in ("LICENSE", "README.md") if name not in kept]
