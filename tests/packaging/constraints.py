"""Write `.ci/constraints.txt`: one version of everything, for all Pythons, so that CI is the same tomorrow."""

from __future__ import annotations

from tests.packaging.distributions import ROOT
from tests.packaging.versions import resolve, uv

MORE = ("check", "docs", "spark")  # extras beside those of the other Pythons: what CI installs as well


def options() -> list[str]:
    """What uv is asked besides."""
    return [*(word for extra in MORE for word in ("--extra", extra)), "--universal", "--upgrade"]


if __name__ == "__main__":
    uv(*resolve("3.11", ROOT / ".ci" / "constraints.txt", *options()))
