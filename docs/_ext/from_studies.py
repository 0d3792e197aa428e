"""The gallery: pictures that studies recorded, each with the command that draws it."""

from __future__ import annotations

from pathlib import Path


def _title(readme: str) -> str:
    return next(line[2:] for line in readme.splitlines() if line.startswith("# "))


def gallery(root: Path) -> str:
    """A picture of each study that has one; the pictures are copied by Sphinx."""
    parts = []
    for picture in sorted((root / "studies").glob("*/*.png")):
        study = picture.parent
        title = _title((study / "README.md").read_text())
        if picture.stem != study.name:
            title += f" ({picture.stem.removeprefix(study.name).strip('_')})"
        parts.append(
            f"## {picture.stem}\n\n{title}.\n\n```{{image}} ../../studies/{study.name}/{picture.name}\n"
            f":alt: {title}\n:class: gallery\n:loading: lazy\n```\n\n"
            f"```sh\ndovetail study {study.name} --full --out {study.name}\n```\n\n"
            f"What is claimed and what was measured: [{study.name}](../../studies/{study.name}/README.md)."
        )
    return "\n\n".join(part.replace("..\n", ".\n") for part in parts)
