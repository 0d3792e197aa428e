"""A table of TOML is read key by key: present, absent or wrong, and nothing is left over."""

from typing import Any

import pytest

from dovetail_protocol.errors import ConfigError
from dovetail_protocol.toml_section import Section


def test_a_key_is_read_once_it_is_asked_for_and_the_rest_is_refused() -> None:
    section = Section("batch", {"minimum": 3, "smal": "wait"})
    assert section.whole("minimum", least=1) == 3
    assert section.text("small", "wait") == "wait"
    with pytest.raises(ConfigError, match=r"`batch\.smal` is not a key of a campaign; did you mean 'small'\?"):
        section.finish()


def test_what_nobody_asked_for_can_be_taken_as_a_whole() -> None:
    section = Section("randomizer", {"name": "krr", "k": 4, "epsilon": 1.0})
    section.text("name")
    assert section.rest() == {"k": 4, "epsilon": 1.0}
    section.finish()


def test_an_absent_optional_table_is_empty_and_false() -> None:
    top = Section("", {"there": {"a": 1}})
    assert not top.section("gone", optional=True) and top.section("there")
    with pytest.raises(ConfigError, match="`gone` is missing at the top"):
        top.section("gone")


@pytest.mark.parametrize(
    ("method", "good", "bad", "options"),
    [
        ("text", "x", ["", 1, None, b"x"], {}),
        ("whole", 3, [2.5, True, "3", -1], {"least": 0}),
        ("positive", 0.5, [0.0, -1, float("inf"), "1", False], {}),
        ("not_negative", 0.0, [-0.1, float("nan"), None, [0]], {}),
        ("probability", 0.5, [0.0, 1.0, "0.5"], {}),
        ("seconds", 60.0, [-1.0, 2e9, float("nan"), True], {"least": 0.0}),
        ("moment", None, ["2030-01-01", 5], {}),
    ],
)
def test_every_reader_takes_its_range_and_names_what_is_outside(
    method: str, good: Any, bad: list[Any], options: dict[str, Any]
) -> None:
    if good is not None:
        assert getattr(Section("here", {"key": good}), method)("key", **options) == good
    for value in bad:
        with pytest.raises(ConfigError, match=r"`here\.key` must be") as caught:
            getattr(Section("here", {"key": value}), method)("key", **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"`key` is missing in \[here\]"):
        getattr(Section("here", {}), method)("key", **options)
    assert getattr(Section("here", {}), method)("key", default=None, **options) is None


def test_a_key_between_quotes_stays_in_one_line() -> None:
    with pytest.raises(ConfigError) as caught:
        Section("", {"a\nb": 1}).finish()
    assert "\n" not in str(caught.value)
