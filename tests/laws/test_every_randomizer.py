"""Every randomizer, of any kind, is documented, accounted by a law, and runs on devices; or it is said why not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from dovetail.account.mechanism_law import mechanism_law
from dovetail.core.errors import UnsupportedError
from dovetail.core.registry import Registry
from dovetail.core.stages import RANDOMIZERS
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS
from dovetail_protocol import mechanism as protocol_mechanism

ROOT = Path(__file__).parent.parent.parent
KINDS: tuple[Registry[Any], ...] = (RANDOMIZERS, VECTOR_RANDOMIZERS)
EVERY = [kind for registry in KINDS for kind in registry]
PAGES = " ".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))

# What there is not, and the page that says so in these words.
NO_LAW: dict[str, tuple[str, str]] = {}
NO_TWIN = dict.fromkeys(
    ("rotated_blocks", "gaussian"), ("vectors.md", "devices have no\n`rotated_blocks` and no `gaussian`")
)


def has_law(kind: Any) -> bool:
    """Whether the central guarantee of some example rests on more than its local promise."""
    for one in kind.examples():
        if hasattr(one, "sampled"):
            if one.sampled is not None:
                return True
            continue
        try:
            mechanism_law(one, n=1000)
        except UnsupportedError:
            continue
        return True
    return False


def test_no_kind_of_randomizers_is_left_out_here() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    assert len(re.findall(r'Registry\(\s*"[\w ]*randomizer"', sources)) == len(KINDS)
    assert len({kind.name for kind in EVERY}) == len(EVERY) > 8


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_every_randomizer_is_documented(kind: Any) -> None:
    assert kind.label and kind.__doc__ and "Source" in kind.__doc__
    assert re.search(rf"`{kind.name}`|{kind.__name__}\b", PAGES), "some page besides the generated one tells of it"


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_every_randomizer_has_a_law_or_a_page_says_why_not(kind: Any) -> None:
    assert has_law(kind) != (kind.name in NO_LAW)


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_every_randomizer_has_a_twin_on_devices_or_a_page_says_why_not(kind: Any) -> None:
    assert (kind.name in protocol_mechanism.names()) != (kind.name in NO_TWIN)


@pytest.mark.parametrize("reasons", [NO_LAW, NO_TWIN])
def test_what_there_is_not_is_said_where_users_read_it(reasons: dict[str, tuple[str, str]]) -> None:
    assert set(reasons) <= {kind.name for kind in EVERY}
    for page, words in reasons.values():
        assert words in (ROOT / "docs" / page).read_text()
