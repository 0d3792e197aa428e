"""Write `lock/*.txt` anew: one version of every library, with its hashes, for all Pythons and systems supported.

Each file is a layer: what one purpose needs beyond the layers before it. `pip install --require-hashes` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.packaging.distributions import ROOT
from tests.packaging.interpreters import SUPPORTED
from tests.packaging.versions import resolve

LOCK = ROOT / "lock"
# Extras of each layer; the first one has what every installation needs, and what builds our own distributions.
LAYERS = {
    "demo": ("demo",),
    "serve": ("serve",),
    "test": ("test", "check", "mqtt"),
    "spark": ("spark",),
    "docs": ("docs",),
}
BUILD = ("hatchling>=1.24", "editables>=0.5")
_PIN = re.compile(r"^(?P<pin>[a-z0-9._-]+==\S+(?: ; [^\\]+?)?)(?= \\$|$)", re.MULTILINE)


def pins(layers: Sequence[str] = tuple(LAYERS)) -> list[str]:
    """Names and versions of these layers, without hashes: constraints for whoever installs something else."""
    return [pin for layer in layers for pin in _PIN.findall((LOCK / f"{layer}.txt").read_text())]


def main() -> None:
    """Resolve all layers together, then give each library to the first layer that needs it."""
    with TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole.txt", Path(folder) / "part.txt"
        _resolve(tuple(LAYERS), whole, "--upgrade")
        LOCK.mkdir(exist_ok=True)
        left = list(_blocks(whole.read_text()))
        for number, layer in enumerate(LAYERS, start=1):
            _resolve(tuple(LAYERS)[:number], part, "--constraint", whole)
            names = {name for name, _ in _blocks(part.read_text())}
            (LOCK / f"{layer}.txt").write_text("".join(block for name, block in left if name in names))
            left = [(name, block) for name, block in left if name not in names]


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each library's name, and its pin with the lines of its hashes."""
    for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE):
        if block.strip():
            yield block.partition("==")[0], block


def _resolve(layers: Sequence[str], out: Path, *options: str | Path) -> None:
    (build := out.with_suffix(".in")).write_text("\n".join(BUILD))
    extras = [extra for layer in layers for extra in LAYERS[layer]]
    resolve(extras, SUPPORTED[0], out, build, "--universal", "--generate-hashes", *options)


if __name__ == "__main__":
    main()
