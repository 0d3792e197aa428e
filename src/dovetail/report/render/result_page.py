"""The result of a test as one HTML file that needs nothing else: the verdict first, what it does not show last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dovetail.report.sections.tables import Table


@dataclass(frozen=True)
class Number:
    """One number with what it means, as a card at the top of a page."""

    name: str
    value: str
    meaning: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """A chart or an image with its caption; `wide` takes a whole row."""

    caption: str
    chart: Markup
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """A heading with pictures, tables by caption, and notes below them; `words` names the columns of prose."""

    title: str
    notes: tuple[str, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    pictures: tuple[Picture, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class ResultPage:
    """What a page says, in the order in which it is read.

    Attributes
    ----------
    kicker, title : str
        What was tested; `title` heads the page.
    verdict : str
        One sentence: what was found.
    found : "memorization", "nothing" or "unclear"
        Colours the verdict; the sentence says it too.
    summary : sentences below the verdict
    limits : what this does not show
    source : where the test comes from
    """

    kicker: str
    title: str
    verdict: str
    found: Literal["memorization", "nothing", "unclear"]
    summary: tuple[str, ...]
    numbers: tuple[Number, ...]
    sections: tuple[Section, ...]
    limits: tuple[str, ...]
    source: str


def render_result(page: ResultPage) -> str:
    """The page as HTML: no network, no script, no font."""
    environment = Environment(
        loader=PackageLoader("dovetail.report.render"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("result.html.j2").render(page=page)
