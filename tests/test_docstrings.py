"""Every public name says what it raises and has an example; the examples run as doctests beside the sources."""

import doctest
import inspect
import os
import re
import sys
from typing import Any

import pytest
from tests.test_exports import NAMES

from dovetail.core.errors import DovetailError

STATED = {
    f"{package.__name__}.{name}": found
    for package, name in NAMES
    if not inspect.ismodule(found := getattr(package, name))
}


def sections(found: Any) -> set[str]:
    """The headings of a docstring that have something below them."""
    return set(re.findall(r"^(\w+)\n-{3,}\n\S", inspect.getdoc(found) or "", re.M))


def is_error(found: Any) -> bool:
    """An error is raised, and raises nothing."""
    return isinstance(found, type) and issubclass(found, DovetailError)


def test_a_public_name_says_what_it_raises_and_shows_how() -> None:
    stated = {name: found for name, found in STATED.items() if not is_error(found)}
    assert [name for name, found in stated.items() if "Raises" not in sections(found)] == []
    shown = [name for name, found in stated.items() if ">>>" in (inspect.getdoc(found) or "")]
    assert [name for name in stated if name not in shown and not inspect.isabstract(stated[name])] == []


def errors(kind: type[Exception]) -> set[type[Exception]]:
    """A kind of error and all kinds of it."""
    return {kind}.union(*(errors(one) for one in kind.__subclasses__()))


def raised(found: Any) -> set[str]:
    """The errors that a docstring names."""
    block = re.search(r"^Raises\n-+\n(.*?)(?=\n\n\w+\n-|\Z)", inspect.getdoc(found) or "", re.M | re.S)
    lines = re.findall(r"^(\S.*)$", block.group(1), re.M) if block else []
    return {name for line in lines for name in line.split(", ")}


def test_what_is_raised_is_an_error_of_ours() -> None:
    known = {one.__name__ for one in errors(DovetailError)}
    assert {name: other for name, found in STATED.items() if (other := raised(found) - known)} == {}


DATA_SETS = [found for found in STATED.values() if found.__module__.startswith("dovetail.datasets.")]


@pytest.mark.exhaust
@pytest.mark.skipif("DOVETAIL_DATA" not in os.environ, reason="needs the public data sets")
@pytest.mark.parametrize("found", DATA_SETS, ids=lambda found: found.__name__)
def test_examples_that_need_a_data_set_are_true_where_it_is(found: Any) -> None:
    for example in doctest.DocTestFinder(recurse=False).find(found, globs=dict(vars(sys.modules[found.__module__]))):
        for step in example.examples:
            step.options.pop(doctest.SKIP, None)
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


def test_a_mute_docstring_would_be_found() -> None:
    def mute() -> None:
        """Does something.

        Examples
        --------
        >>> 1
        1
        """

    assert sections(mute) == {"Examples"} and not is_error(mute)
