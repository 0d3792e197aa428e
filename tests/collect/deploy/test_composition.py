"""All of compose.yaml, started with the kernel's namespaces, and a collection through it over HTTPS and MQTT."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.collect.deploy.containers import NAMESPACES
from tests.collect.deploy.test_compose import ROLES, SERVICES
from tests.collect.servers import program

NEEDED = ("ip", "nsenter", "setpriv", "nginx", "mosquitto", "nc", "wget")


def absent() -> str:
    """Why this cannot run here, or nothing."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces of its own need root on Linux"
    missing = [name for name in NEEDED if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    missing += [] if list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) else ["postgresql"]
    if missing:
        return f"{', '.join(missing)} are not installed"
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip()


@pytest.mark.exhaust
def test_everything_starts_collects_and_stops_as_the_readme_says(tmp_path: Path) -> None:
    if reason := absent():
        if os.environ.get("DOVETAIL_REQUIRE_SERVERS") == "1" and "root" not in reason:
            pytest.fail(reason)
        pytest.skip(reason)
    assert program("nginx", "/usr/sbin")
    command = [*NAMESPACES, sys.executable, "-m", "tests.collect.deploy.scenario", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["sent"] == ["accepted", "accepted"]
    assert (found["estimates"]["round"], found["estimates"]["n"]) == (1, 2)
    assert found["users"] == {name: service["user"].split(":")[0] for name, service in SERVICES.items()}
    assert not any(found["writes"].values())
    assert found["reaches"] == [f"{role}: {role}-store" for role in ROLES]
    assert "held" in json.dumps(found["tokens"])
    assert set(found["stopped"]) == set(SERVICES) and not any(found["stopped"].values()), found["logs"]
    for name, log in found["logs"].items():
        assert not re.search(r"10\.77\.\d+\.1\b", log), name  # where the devices are
