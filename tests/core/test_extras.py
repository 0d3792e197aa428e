"""What is missing is named with the line that brings it to this installation."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from dovetail.core.extras import pip_line


def recorded(url: str, **more: object) -> str:
    return json.dumps({"url": url, **more})


LINES = {
    "an index": (None, "pip install 'dovetail-privacy[web]'"),
    "a checkout": (recorded("file:///srv/dovetail", dir_info={}), "pip install '/srv/dovetail[web]'"),
    "an editable checkout": (
        recorded("file:///srv/my%20work", dir_info={"editable": True}), "pip install -e '/srv/my work[web]'",
    ),
    "a wheel": (
        recorded("file:///tmp/dovetail_privacy-0.1.0-py3-none-any.whl", archive_info={}),
        "pip install '/tmp/dovetail_privacy-0.1.0-py3-none-any.whl[web]'",
    ),
    "an address": (
        recorded("https://example.org/d.whl", archive_info={}),
        "install it again from https://example.org/d.whl with the extra `web`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("origin", LINES)
def test_what_is_missing_comes_from_where_the_package_came_from(origin: str) -> None:
    text, line = LINES[origin]
    assert pip_line("web", read=lambda: text) == line


def test_a_tree_that_nobody_has_installed_names_no_distribution() -> None:
    def nowhere() -> str | None:
        raise PackageNotFoundError

    assert pip_line("web", read=nowhere) == "install the extra `web` that pyproject.toml lists"
