"""The telemetry starters: silent until somebody says yes, one answer a round, and gone when somebody says no."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.node import CLIENT, needs_client

from dovetail.collect.simulate.deployment import Deployment, run_servers

ROOT = Path(__file__).parents[2]
STARTERS = {
    "python": [sys.executable, str(ROOT / "device" / "examples" / "telemetry.py")],
    "node": ["node", str(CLIENT / "examples" / "telemetry.mjs")],
}
ASKED = {
    "schema_version": 1,
    "id": "telemetry",
    "question": "Which command do you use most?",
    "randomizer": {"name": "krr", "k": 4, "epsilon": 1.0, "categories": ["build", "test", "run", "other"]},
    "rounds": {"schedule": "manual", "count": 3},
    "batch": {"minimum": 100},
    "promise": {"delta": 1e-6, "authentication": "none"},
}


@pytest.mark.exhaust
@pytest.mark.parametrize("language", [pytest.param("node", marks=needs_client), "python"])
def test_nothing_is_sent_before_a_yes_one_answer_a_round_after_it_and_a_no_deletes(
    language: str, tmp_path: Path
) -> None:
    site, state = Deployment.of(ASKED, tmp_path / "site", devices=1), tmp_path / "state"
    site.write()
    told = {"XDG_STATE_HOME": str(state), "TELEMETRY_CAMPAIGN": str(site.folder / "campaign.toml")}

    def said(*words: str) -> str:
        command = [*STARTERS[language], *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | told)
        assert done.stderr == ""
        return done.stdout.strip()

    with run_servers(site):
        assert "Your answer: test. Sent, for example: " in said("preview", "test")
        assert said("count", "test") == "off" and not state.exists()
        said("on")
        assert [said("count", each) for each in ("test", "run")] == ["accepted"] * 2
        assert "must be one of build, test, run, other" in said("count", "nothing")
        said("off")
        assert not any(path.is_file() for path in state.rglob("*")) and said("count", "test") == "off"
