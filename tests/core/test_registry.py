"""What there is of each kind: the files of a folder first, then the entry points of other distributions."""

import sys
from pathlib import Path

import pytest

import dovetail as dt
from dovetail.core.errors import ParameterError, UnsupportedError
from dovetail.core.registry import Registry
from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS

MODULE = """
from typing import ClassVar
from dovetail.core.stages import FrequencyRandomizer

class Louder(FrequencyRandomizer):
    name: ClassVar[str] = "louder"
    label: ClassVar[str] = "louder response"

    @classmethod
    def examples(cls):
        return ()

class Broken(FrequencyRandomizer):
    name: ClassVar[str] = "exampleless"
    label: ClassVar[str] = "without examples"

class Impostor(FrequencyRandomizer):
    name: ClassVar[str] = "krr"

number = 7
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Another distribution is installed, with these randomizers."""
    (tmp_path / "registry_elsewhere.py").write_text(MODULE)
    folder = tmp_path / "elsewhere-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        "[dovetail.randomizers]\nlouder = registry_elsewhere:Louder\nkrr = registry_elsewhere:Impostor\n"
        "other = registry_elsewhere:number\nexampleless = registry_elsewhere:Broken\nbroken = registry_gone:Thing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "registry_elsewhere", raising=False)
    return "louder"


@pytest.mark.parametrize("registry", [RANDOMIZERS, SHUFFLERS, ATTACKS], ids=lambda registry: registry.kind)
def test_every_file_declares_what_it_is_named_after(registry: Registry[dt.Randomizer]) -> None:
    assert registry.names()
    for name in registry.names():
        assert registry[name].name == name and registry[name].label


def test_another_distribution_adds_a_randomizer(elsewhere: str) -> None:
    assert elsewhere in RANDOMIZERS
    assert RANDOMIZERS[elsewhere].label == "louder response"


def test_names_are_known_without_importing_what_they_name(elsewhere: str) -> None:
    assert elsewhere in RANDOMIZERS.names()
    assert "registry_elsewhere" not in sys.modules


def test_another_distribution_cannot_take_a_built_in_name(elsewhere: str) -> None:
    assert RANDOMIZERS["krr"] is dt.KRR
    assert RANDOMIZERS.names().count("krr") == 1


@pytest.mark.parametrize(("name", "reason"), [("other", "must be a Randomizer"), ("broken", "cannot be loaded")])
def test_an_entry_point_that_cannot_serve_is_refused_when_it_is_asked_for(
    elsewhere: str, name: str, reason: str
) -> None:
    assert name in RANDOMIZERS.names()
    with pytest.raises(UnsupportedError, match=reason):
        _ = RANDOMIZERS[name]


def test_an_unknown_name_is_refused_with_the_nearest_known_one() -> None:
    with pytest.raises(ParameterError, match="'hadamard'"):
        _ = RANDOMIZERS["hadamrd"]


def test_a_randomizer_without_examples_is_refused_in_one_line(elsewhere: str) -> None:
    with pytest.raises(UnsupportedError, match="is refused: its examples fail with TypeError"):
        RANDOMIZERS["exampleless"]
