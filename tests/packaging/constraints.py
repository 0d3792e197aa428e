"""Write `.ci/constraints.txt`: one version of everything, for all Pythons, so that CI is the same tomorrow."""

from __future__ import annotations

from tests.packaging.distributions import ROOT
from tests.packaging.versions import resolve, uv

if __name__ == "__main__":
    uv(
        *resolve(
            "3.11",
            ROOT / ".ci" / "constraints.txt",
            "--extra",
            "check",
            "--extra",
            "docs",
            "--universal",
            "--upgrade",
        )
    )
