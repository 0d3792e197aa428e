"""The sample files are taken by the roles that they are written for, and name every key that there is."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.device.campaigns import keys
from tests.device.test_campaign import MISSING, WRONG

from dovetail.collect.analyzer.analyzer import AnalyzerConfig
from dovetail.collect.analyzer.analyzer import load as load_analyzer
from dovetail.collect.campaign.explain import explain
from dovetail.collect.files import load_campaign
from dovetail.collect.shuffler.shuffler_config import ShufflerConfig
from dovetail.collect.shuffler.shuffler_config import load as load_shuffler
from dovetail_protocol.campaign import draft

ROOT = Path(__file__).parent.parent.parent
SAMPLES = ROOT / "docs" / "samples" / "collect"
MODELS: dict[str, type[BaseModel]] = {"shuffler": ShufflerConfig, "analyzer": AnalyzerConfig}


def load(name: str, path: Path) -> BaseModel:
    return load_shuffler(path) if name == "shuffler" else load_analyzer(path)


def names(model: type[BaseModel]) -> set[str]:
    """Every key of a model and of its tables."""
    found = set(model.model_fields)
    for field in model.model_fields.values():
        for part in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(part, type) and issubclass(part, BaseModel):
                found |= names(part)
    return found


def uncommented(path: Path) -> str:
    """The file with everything that it leaves out."""
    return re.sub(r"(?m)^## ", "", path.read_text())


@pytest.mark.parametrize("name", MODELS)
def test_a_sample_configuration_is_taken_as_it_is_and_with_everything_it_leaves_out(
    name: str, tmp_path: Path
) -> None:
    plain = load(name, SAMPLES / f"{name}.toml")
    path = tmp_path / f"{name}.toml"
    path.write_text(uncommented(SAMPLES / f"{name}.toml"))
    assert load(name, path) != plain, "what is left out says something"


@pytest.mark.parametrize("name", MODELS)
def test_a_sample_configuration_names_every_key(name: str) -> None:
    text = uncommented(SAMPLES / f"{name}.toml")
    shown = set(re.findall(r"(?m)^\[?(\w+)(?: =|\])", text))
    assert shown == names(MODELS[name])


@pytest.mark.parametrize("name", MODELS)
def test_the_configurations_of_the_compose_file_are_taken(name: str) -> None:
    found = load(name, ROOT / "deploy" / name / f"{name}.toml").model_dump()
    assert found["store"].startswith("postgresql") and found["listen"].startswith("127.0.0.1:")


@pytest.mark.exhaust
def test_the_sample_campaign_is_signed_and_sound() -> None:
    found = load_campaign(SAMPLES / "campaign.toml", keys().owner.verifying_key())
    assert explain(found, folder=SAMPLES).warnings == ()


def test_the_sample_campaign_names_every_key() -> None:
    shown = set(re.findall(r"(?m)^(?:## )?\[?(\w+)(?: =|\])", (SAMPLES / "campaign.toml").read_text()))
    known = {path.rpartition(".")[2] for path in [*MISSING, *(path for path, _, _ in WRONG)]}
    unknown = {"epsilom", "counts", "maximum", "auditor", "qestion", "shufler"}
    assert known - unknown <= shown


@pytest.mark.parametrize("table", ["precision", "groups"])
def test_the_tables_that_the_sample_campaign_leaves_out_are_taken(table: str) -> None:
    text = (SAMPLES / "campaign.toml").read_text()
    part = re.search(rf"(?m)^## \[{table}\](?:.*\n## .*)+", text)
    assert part is not None
    document: dict[str, Any] = tomllib.loads(part.group(0).replace("## ", ""))
    found = draft(text.replace(part.group(0), part.group(0).replace("## ", "")).encode())
    assert found.precision is not None if table == "precision" else found.groups == tuple(document["groups"]["names"])
