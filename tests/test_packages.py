"""What is built for users is checked, and what CI installs is written down."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.packaging.constraints import MORE
from tests.packaging.distributions import BOTH, ROOT, foreign, missing
from tests.packaging.interpreters import SUPPORTED, version_of
from tests.packaging.versions import EXTRAS

WHEEL = ["dovetail/__init__.py", "dovetail/py.typed", "d-1.dist-info/METADATA", "d-1.dist-info/licenses/LICENSE"]
METADATA = [tomllib.loads((one.folder / "pyproject.toml").read_text())["project"] for one in BOTH]


@pytest.mark.parametrize("gone", WHEEL[1:])
def test_a_wheel_without_licence_or_types_is_noticed(gone: str) -> None:
    assert missing(WHEEL, ["dovetail"]) == []
    assert [gone.endswith(name) for name in missing([name for name in WHEEL if name != gone], ["dovetail"])] == [True]


def test_a_folder_that_would_land_in_everybodys_packages_is_noticed() -> None:
    assert foreign(WHEEL, ["dovetail"]) == []
    assert foreign([*WHEEL, "tests/conftest.py"], ["dovetail"]) == ["tests/conftest.py"]


def test_both_distributions_have_the_same_licence_and_pythons() -> None:
    device, analyst = BOTH
    assert (device.folder / "LICENSE").read_bytes() == (analyst.folder / "LICENSE").read_bytes()
    assert {project["requires-python"] for project in METADATA} == {f">={SUPPORTED[0]}"}


def test_only_an_interpreter_that_runs_has_a_version(tmp_path: Path) -> None:
    assert version_of(Path(sys.executable)) == f"{sys.version_info[0]}.{sys.version_info[1]}"
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 127\n")  # what a version manager leaves for versions that are not there
    broken.chmod(0o755)
    assert version_of(broken) is None and version_of(tmp_path / "none") is None


def test_the_constraints_pin_every_dependency_and_name_no_place() -> None:
    text = (ROOT / ".ci" / "constraints.txt").read_text()
    assert not re.search(r"://|/|@|--", text)
    assert all(re.match(r"[a-z0-9._-]+==[\w.]+( ; |$)", line) for line in text.splitlines())
    pinned = {line.partition("==")[0] for line in text.splitlines()}
    wanted = [need for project in METADATA for need in project["dependencies"]]
    kept = (*EXTRAS, *MORE)
    wanted += [
        need for project in METADATA for extra in kept for need in project["optional-dependencies"].get(extra, [])
    ]
    names = {re.split(r"[\[<>=;! ]", need)[0].lower().replace("_", "-") for need in wanted}
    assert names - pinned == {"dovetail-device", "dovetail-privacy"}
