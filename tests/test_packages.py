"""What is built for users is checked, and what CI installs is written down."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from tests.packaging.distributions import BOTH, foreign, missing
from tests.packaging.interpreters import SUPPORTED, version_of
from tests.packaging.lock import LAYERS, LOCK, pins

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


def test_the_lock_pins_every_dependency_once_with_hashes_and_names_no_place() -> None:
    text = "".join((LOCK / f"{layer}.txt").read_text() for layer in LAYERS)
    assert not re.search(r"://|/|@", text)
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert all(re.fullmatch(r"[^\\\n]+( \\\n    --hash=sha256:[0-9a-f]{64})+\n", block) for block in blocks)
    markers = [(pin.partition("==")[0], pin.partition(" ; ")[2]) for pin in pins()]
    assert len(blocks) == len(markers) == len(set(markers))
    wanted = [need for project in METADATA for need in project["dependencies"]]
    kept = [extra for extras in LAYERS.values() for extra in extras]
    wanted += [
        need for project in METADATA for extra in kept for need in project["optional-dependencies"].get(extra, [])
    ]
    names = {re.split(r"[\[<>=;! ]", need)[0].lower().replace("_", "-") for need in wanted}
    assert names - {name for name, _ in markers} == {"dovetail-device", "dovetail-privacy"}
