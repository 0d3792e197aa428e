"""Names between commas are those that a person means, also where they hold commas, quotes or blanks."""

import pytest

from dovetail.core.settings import split_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (" a , b ,", ["a", "b"]),
        ('"once, maybe",never', ["once, maybe", "never"]),
        ('never, "once, maybe"', ["never", "once, maybe"]),
        ('5" pipe,4" pipe', ['5" pipe', '4" pipe']),
        ("two  blanks,x", ["two  blanks", "x"]),
        ("a\nb,c", ["a", "b", "c"]),
        ("x" * 200_000 + ",b", ["x" * 200_000, "b"]),
        ("", []),
        (None, []),
    ],
)
def test_names_are_split_where_people_mean_it(text: str | None, names: list[str]) -> None:
    assert split_names(text) == names
