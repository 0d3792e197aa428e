"""Who imports what: inner envelopes are opened in one place, and the analyzer knows nothing of devices' ways."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "dovetail"
UNSEAL = "dovetail.collect.analyzer.unseal"
SDK = {f"dovetail_device.{name}" for name in ("outbox", "sender", "client", "http", "mqtt")}


def names(word: str, path: Path) -> bool:
    """Whether a file has this word at all; only those that do are parsed."""
    return word in path.read_text()


def imports(path: Path) -> set[str]:
    """Every module that a file imports, with the names taken from it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def test_only_the_analyzer_imports_what_opens_inner_envelopes() -> None:
    importers = {
        path.relative_to(SOURCE).parts[:2]
        for path in SOURCE.rglob("*.py")
        if names("unseal", path) and UNSEAL in imports(path)
    }
    assert importers == {("collect", "analyzer")}


def test_inner_envelopes_are_opened_in_one_file() -> None:
    users = {
        path.name
        for path in SOURCE.rglob("*.py")
        if names("inner_info", path) and "dovetail_protocol.messages.inner_info" in imports(path)
    }
    assert users <= {"unseal.py"}


def test_the_analyzer_imports_no_device_and_no_shuffling() -> None:
    for path in (SOURCE / "collect" / "analyzer").rglob("*.py"):
        found = imports(path)
        assert not found & SDK, path
        assert "dovetail_protocol.messages.open_envelope" not in found, path
        assert not any(name.startswith("dovetail.collect.shuffler.link_key_store") for name in found), path


def test_the_rule_would_catch_a_wrong_import(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def late():\n    from dovetail.collect.analyzer.unseal import unseal\n")
    assert UNSEAL in imports(wrong)
