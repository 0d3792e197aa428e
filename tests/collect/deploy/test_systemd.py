"""The units of systemd as they are shipped: what they start exists, nothing runs as root, nobody else may look."""

from __future__ import annotations

import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dovetail.cli.collect import app
from dovetail.collect import http as limits

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)


def service(unit: Path) -> dict[str, str]:
    found = ConfigParser(interpolation=None)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(unit)
    assert found.sections() == ["Unit", "Service", "Install"]
    return dict(found["Service"])


def test_there_is_a_unit_for_each_server_and_the_readme_names_it() -> None:
    assert [unit.stem.removeprefix("dovetail-") for unit in UNITS] == ["analyzer", "issuer", "shuffler"]
    assert all(f"`systemd/{unit.name}`" in (DEPLOY / "README.md").read_text() for unit in UNITS)


@each_unit
def test_a_unit_starts_a_verb_on_a_folder_of_its_own_user(unit: Path) -> None:
    found, name = service(unit), unit.stem
    program, group, verb, config = found["ExecStart"].split()
    assert (program, group, verb) == ("/opt/dovetail/bin/dovetail", "collect", name.removeprefix("dovetail-"))
    assert CliRunner().invoke(app, [verb, "--help"]).exit_code == 0
    assert (found["User"], found["StateDirectory"], found["StateDirectoryMode"]) == (name, name, "0700")
    assert config == f"/var/lib/{name}/{verb}.toml"


@each_unit
def test_a_unit_writes_for_its_owner_alone_and_only_there_dumps_no_memory_and_waits_for_requests(unit: Path) -> None:
    found = service(unit)
    hardened = {"UMask": "0077", "LimitCORE": "0", "ProtectSystem": "strict", "NoNewPrivileges": "yes"}
    hardened |= {"CapabilityBoundingSet": "", "ProtectHome": "yes", "PrivateTmp": "yes", "Restart": "on-failure"}
    assert {name: found[name] for name in hardened} == hardened
    assert int(found["TimeoutStopSec"]) > 2 * limits.STOP_SECONDS
    assert "ReadWritePaths" not in found


@each_unit
def test_systemd_understands_every_line_of_a_unit(unit: Path, tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("systemd is not installed")
    here = tmp_path / unit.name
    here.write_text(unit.read_text().replace("/opt/dovetail/bin/dovetail", "/bin/true"))
    done = subprocess.run([analyze, "verify", "--man=no", str(here)], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if unit.name in line or str(here) in line], done.stderr
