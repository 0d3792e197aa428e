"""The shuffler is built so that it cannot read reports: nothing that it imports could open one."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dovetail.collect

FOLDER = Path(dovetail.collect.__file__).parent
SDK = ("outbox", "sender", "client", "http", "mqtt", "session")
FORBIDDEN = ("dovetail.collect.analyzer", *(f"dovetail_device.{name}" for name in SDK))


def imports(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def forbidden(name):
    return "unseal" in name or any(f"{name}.".startswith(f"{bad}.") for bad in FORBIDDEN)


def wrong(text):
    return [name for name in imports(text) if forbidden(name)]


@pytest.mark.parametrize("path", sorted((FOLDER / "shuffler").glob("*.py")), ids=lambda path: path.name)
def test_no_module_of_the_shuffler_imports_the_analyzer_or_the_device(path):
    assert wrong(path.read_text()) == []


def test_the_search_would_find_a_wrong_import():
    assert wrong("from dovetail.collect.analyzer import unseal") and wrong("import dovetail_device.client")


@pytest.mark.exhaust
def test_a_running_shuffler_has_loaded_nothing_of_the_analyzer_or_the_device():
    home = "dovetail.collect.shuffler"
    code = f"import sys, {home}.shuffler_config, {home}.app; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "dovetail.collect.shuffler.shuffler" in loaded
    assert [name for name in loaded if forbidden(name)] == []
