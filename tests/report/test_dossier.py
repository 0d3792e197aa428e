"""The dossier of a release: its entry passes the register's own rules, its odds are true, what is open is marked."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from dovetail.cli.main import invoke
from dovetail.report.dossier import FILES, OPEN, TOTAL, dossier, odds

SCHEMA = yaml.safe_load((Path(__file__).parent / "register" / "deployments-schema.yaml").read_text())
TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str, "number": (int, float), "integer": int, "array": list, "object": dict,
}  # fmt: skip
SURVEY = """
schema_version = 1
title = "A \\"survey\\" \\\\ of tastes"
mode = "release"
[data]
path = "table.csv"
person = "id"
{column}
[randomize]
{randomize}
[shuffle]
shuffler = "{shuffler}"
[promise]
delta = 1e-6
{promise}
"""
CATEGORIES = 'private = "taste"\ncategories = ["salt", "sweet"]'
NUMBERS = 'private = "size"\nlower = 0\nupper = 10'
RELEASES = {
    "shuffled": (CATEGORIES, 'randomizer = "krr"\nepsilon = 1.0', "uniform"),
    "one group": (CATEGORIES, 'randomizer = "unary"\nepsilon = 1.0', "uniform"),
    "a number": (NUMBERS, 'randomizer = "laplace"\nepsilon = 1.0', "uniform"),
    "dummies": (CATEGORIES, "", "uniform"),
}


def faults(node: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """What a JSON Schema (draft 7) of the keywords that this one uses refuses."""
    kinds = schema.get("type", [])
    wanted = [TYPES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if wanted and not any(isinstance(node, kind) and not isinstance(node, bool) for kind in wanted):
        yield f"{path}: {node!r} is not of type {kinds}"
        return
    if "enum" in schema and node not in schema["enum"]:
        yield f"{path}: {node!r} is not one of {schema['enum']}"
    if schema.get("format") == "date" and not re.fullmatch(r"\d{4}-\d\d-\d\d", node):
        yield f"{path}: {node!r} is not a date"
    if isinstance(node, list):
        if len(node) < schema.get("minItems", 0):
            yield f"{path}: is empty"
        for one in node:
            yield from faults(one, schema["items"], path)
    if isinstance(node, dict):
        known = schema.get("properties", {})
        yield from (f"{path}: needs {name}" for name in schema.get("required", []) if name not in node)
        if schema.get("additionalProperties") is False:
            yield from (f"{path}/{name}: unexpected" for name in node if name not in known)
        for name, inner in node.items():
            yield from faults(inner, known.get(name, {}), f"{path}/{name}")


def released(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    column, randomize, shuffler = RELEASES[name]
    monkeypatch.chdir(folder)
    rows = range(1_000)
    table = {"id": rows, "taste": ["salt", "sweet"] * 500, "size": [float(row % 11) for row in rows]}
    pl.DataFrame(table).write_csv("table.csv")
    promise = "" if randomize else 'trust = "shuffler"\nepsilon = 1.0'
    text = SURVEY.format(column=column, randomize=randomize, shuffler=shuffler, promise=promise)
    Path("c.toml").write_text(text if randomize else text.replace("[randomize]\n", ""))
    assert invoke(["run", "c.toml", "--out", "out", "--dossier"]) == 0
    return json.loads(Path("out/report.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.exhaust
@pytest.mark.parametrize("name", RELEASES)
def test_the_entry_passes_the_registers_rules_and_says_what_the_report_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = released(name, tmp_path, monkeypatch)
    assert {path.name for path in Path("out/dossier").iterdir()} == set(FILES)
    text = Path("out/dossier/register_entry.yaml").read_text()
    entry = yaml.load(text, Loader=yaml.Loader)
    assert [*faults(entry, SCHEMA)] == []
    styles = {token.style for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)}
    assert styles <= {None, '"'} and not re.search(r"\\\\[^()]", str(entry))  # its own checks of quoting and LaTeX
    deployment = entry["deployment"]
    model, parameters = deployment["deployment_model"]["model_name"], deployment["privacy_loss"]["privacy_parameters"]
    block = document["central"]
    assert model == "Shuffle" and parameters == {"epsilon": block["epsilon"], "delta": block["delta"]}
    details, where = deployment["privacy_loss"]["privacy_parameters_details"], deployment["deployment_model"]
    if name == "dummies":
        assert "Trusting nobody: no guarantee" in details and "sent as they are" in where["model_name_details"]
    else:  # the larger one stands there too
        assert "epsilon 1," in details and "randomized on its device" in where["model_name_details"]
    assert invoke(["audit", "release", "out"]) == 0
    assert text.count(OPEN) >= 10 and TOTAL in text


@pytest.mark.exhaust
def test_an_amplified_epsilon_is_never_called_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = released("shuffled", tmp_path, monkeypatch)
    assert document["central"]["epsilon"] < document["local"]["epsilon"]
    for shuffler, model in (("uniform", "Shuffle"), ("identity", "Local")):
        text = dossier({**document, "shuffler": shuffler})["register_entry.yaml"]
        loss = yaml.safe_load(text)["deployment"]["privacy_loss"]["privacy_parameters"]
        assert f'model_name: "{model}"' in text and (loss["epsilon"] == 1.0) == (model == "Local")


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (0.1, 0.0), (1.0, 1e-6), (2.0, 0.1), (4.0, 0.0), (50.0, 0.0)]
)
def test_the_odds_stay_true_when_they_are_rounded(epsilon: float, delta: float) -> None:
    """The trade-off at its symmetric point: a rule wrong this often about a no is right at most that often."""
    wrong, right = odds(epsilon, delta)
    most = min(
        1.0, math.exp(epsilon) * wrong / 100.0 + delta, 1.0 - math.exp(-epsilon) * (1.0 - delta - wrong / 100.0)
    )
    assert most <= right / 100.0 + 1e-12 and wrong + right >= 100


def test_the_label_says_what_a_release_tells_in_counts_out_of_100(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released("shuffled", tmp_path, monkeypatch)
    label = Path("out/dossier/label.html").read_text()
    assert "in no more than 26 of 100 such releases" in label and "in at most 74 of 100" in label
    assert "with another answer in your place" in " ".join(label.split()).replace("compares with", "with")
    assert "That you took part is no secret" in label and TOTAL in label
    questions = Path("out/dossier/questions.md").read_text()
    assert questions.count("\n*") >= 7 and "no proof" in questions and "NIST SP 800-226" in questions


@pytest.mark.exhaust
def test_a_dossier_is_of_a_release_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released("shuffled", tmp_path, monkeypatch)
    assert invoke(["audit", "release", "out", "--dossier"]) == 2  # one is there
    assert invoke(["audit", "release", "out", "--dossier", "--force"]) == 0
    Path("c.toml").write_text(Path("c.toml").read_text().replace('"release"', '"rehearsal"\nseed = 1'))
    capsys.readouterr()
    assert invoke(["run", "c.toml", "--out", "again", "--dossier"]) == 2
    error = capsys.readouterr().err
    assert "--dossier is about a release" in error and error.count("\n") == 1 and not Path("again").exists()
