"""Imports point down the layers; this table is the picture of the package."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "dovetail"

# a row imports from itself (its own folder) and from rows below it
LAYERS = [
    ["cli"],
    ["collect"],
    ["pipeline"],
    ["report"],
    ["plan"],
    ["attack"],
    ["estimate", "account", "leak"],
    ["randomize", "shuffle", "datasets"],
    ["core"],
]
RANK = {folder: rank for rank, row in enumerate(LAYERS) for folder in row}
OPTIONAL = {
    "statsmodels",
    "networkx",
    "pandas",
    "pyarrow",
    "matplotlib",
    "sklearn",
    "threadpoolctl",
    "flint",
    "dp_accounting",
    "pooch",
}
SERVE = {
    "pythonjsonlogger",
    "starlette",
    "uvicorn",
    "httpx",
    "sqlalchemy",
    "alembic",
    "prometheus_client",
    "paho",
    "psycopg",
}
DEVICE = {f"dovetail_device.{name}" for name in ("client", "http", "ledger", "mqtt", "outbox", "sender", "session")}
FILES = sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> list[str]:
    """Every module that a file imports, at the top or inside functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.append(node.module or "")
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down_the_layers(path: Path) -> None:
    inside = path.relative_to(ROOT).parts
    if len(inside) == 1:
        return  # the package itself names everything, lazily
    folder = inside[0]
    for name in imports(path):
        parts = name.split(".")
        if parts[0] == "dovetail" and len(parts) > 1:
            other = parts[1]
            assert other == folder or RANK[other] > RANK[folder], f"{folder} must not import {name}"
        assert parts[0] not in OPTIONAL, f"{name} is optional: bring it in with core.extras.require"
        assert parts[0] not in SERVE or folder == "collect", f"{name} is for the service: it belongs into collect"


ROLES = [path for path in FILES if path.relative_to(ROOT).parts[0] == "collect"]


@pytest.mark.parametrize("path", ROLES, ids=lambda path: str(path.relative_to(ROOT / "collect")))
def test_no_role_imports_what_it_must_not_know(path: Path) -> None:
    role, names = path.relative_to(ROOT / "collect").parts[0], imports(path)
    if role != "analyzer":
        assert not any(name.startswith("dovetail.collect.analyzer.unseal") for name in names)
    if role == "shuffler":
        assert not any(name.startswith("dovetail.collect.analyzer") for name in names)
    if role == "analyzer":
        assert not any(name.startswith("dovetail.collect.shuffler") for name in names)
    if role != "simulate":
        assert not DEVICE & set(names), "servers know nothing of a device's outbox"


def test_every_folder_has_its_layer() -> None:
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and (path / "__init__.py").exists()}
    assert folders == set(RANK)


def test_no_module_is_huge() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > 500} == {}


def test_the_upward_rule_would_catch_a_wrong_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from dovetail.cli.main import app\n")
    assert RANK[imports(wrong)[0].split(".")[1]] < RANK["core"]
