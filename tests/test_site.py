"""The site: what is made from the sources, what its pages run, and what a check of the result would find."""

import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.browser import AXE, NO_AXE, needs_chromium
from tests.site import dead_links, faults, faults_in_a_browser, loads_from_elsewhere
from tests.tiers import EXHAUST

from dovetail.cli.main import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FOLDERS = ("tutorials", "how-to", "explanation", "reference")
PAGES = sorted([DOCS / "index.md", *(page for folder in FOLDERS for page in (DOCS / folder).rglob("*.md"))])
sys.path.insert(0, str(DOCS / "_ext"))
session: Any = import_module("session")
theorems: Any = import_module("from_sources")
papers: Any = import_module("from_papers")
cli: Any = import_module("from_cli")


def named(page: Path) -> str:
    return str(page.relative_to(DOCS))


RUN = [page for page in PAGES if session.blocks(page.read_text())]
# what a page needs that not everybody has; the build of the site runs it all the same
NEEDS = {"tutorials/documents.md": "sentencex", "tutorials/gps-trace.md": "cvxpy"}


@pytest.mark.parametrize("page", [pytest.param(page, marks=EXHAUST) for page in RUN], ids=map(named, RUN))
def test_what_a_page_shows_runs(page: Path) -> None:
    if named(page) in NEEDS:
        pytest.importorskip(NEEDS[named(page)])
    session.run_page(page.read_text())


def test_code_is_run_or_says_why_not() -> None:
    """A block of Python or of a shell that is only shown stands below a comment `<!-- not run: reason -->`."""
    for page in PAGES:
        text = page.read_text()
        for block in re.finditer(r"^```(python|sh|console)$", text, re.M):
            before = text[: block.start()].rstrip().splitlines()[-1:]
            assert before and re.match(r"<!-- not run: \S+ .*-->", before[0]), (
                f"{named(page)}: {text[block.start() :][:80]!r}"
            )


def test_blocks_keep_their_order_their_status_and_their_text() -> None:
    text = "```{run}\nx = 1\n```\n\n```{command}\n:status: 2\ndovetail plan\n```\n\n```{code-cell}\nx\n```\n"
    assert session.blocks(text) == [("run", 0, "x = 1\n"), ("command", 2, "dovetail plan\n"), ("code-cell", 0, "x\n")]


def test_a_page_whose_example_fails_would_be_found() -> None:
    with pytest.raises(RuntimeError, match="exit status 2"):
        session.run_page("```{command}\ndovetail plan\n```\n")
    with pytest.raises(AssertionError):
        session.run_page("```{run}\nassert 1 == 2\n```\n")
    assert "Missing option" in session.run_page("```{command}\n:status: 2\ndovetail plan\n```\n")


def options() -> dict[str, set[str]]:
    """Every verb of the command line with what it takes."""
    command = typer.main.get_command(app)
    with command.make_context("dovetail", [], resilient_parsing=True) as context:
        return {
            inner.command_path: {name for one in verb.params for name in (*one.opts, *one.secondary_opts)}
            | {"--help"}
            for verb, inner in cli.walk(command, context)
        }


def commands(text: str) -> list[list[str]]:
    """The command lines of the fenced blocks of a page, as words."""
    fenced = "\n".join(re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S)).replace("\\\n", " ")
    lines = re.findall(r"^[$!\s]*(?:\.venv/bin/)?(dovetail [a-z].*)$", fenced, re.M)
    return [re.split(r"[|;&>]", line.split(" #")[0])[0].split() for line in lines]


def misspelled(words: list[str], known: dict[str, set[str]]) -> set[str]:
    """What a command line asks for that is not there."""
    path = max((verb for verb in known if words[: verb.count(" ") + 1] == verb.split()), key=len, default=None)
    if path is None:
        return {" ".join(words[:2])}
    return {word.split("=")[0] for word in words if word.startswith("--")} - known[path]


def test_every_command_on_a_page_is_a_verb_with_the_options_that_it_has() -> None:
    known = options()
    found = {page: commands(page.read_text()) for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]}
    assert sum(len(lines) for lines in found.values()) >= 90
    wrong = {(page.name, one) for page, lines in found.items() for words in lines for one in misspelled(words, known)}
    assert wrong == set()
    assert misspelled(["dovetail", "plan", "--eror", "0.1", "--n", "5"], known) == {"--eror"}
    assert misspelled(["dovetail", "plann", "--n", "5"], known) == {"dovetail plann"}
    assert commands("```sh\n$ dovetail run a.toml \\\n --json > x  # y\n```\n") == [
        ["dovetail", "run", "a.toml", "--json"]
    ]


# pages beside the four folders whose Python no other test runs
@pytest.mark.exhaust
@pytest.mark.parametrize("name", ["text.md"])
def test_python_on_the_other_pages_runs(name: str) -> None:
    pytest.importorskip("sklearn")
    found = re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text(), re.M | re.S)
    assert found
    for block in found:
        exec(compile(block, name, "exec"), {})


def test_every_statement_of_the_papers_names_a_home_and_a_test_that_are_there() -> None:
    found = papers.statements()
    assert len(found) >= 100 and len({one.paper for one in found}) == 5
    assert [missing for one in found if (missing := papers.missing(one, ROOT))] == []
    assert all(one.home or "alone" in one.what for one in found)
    assert all(bool(one.home) == bool(one.test) for one in found)
    gone = papers.Statement("", "", "", "shuffle/mallows.py::Malows", "")
    assert papers.missing(gone, ROOT) == gone.home


def test_every_statement_of_the_papers_is_two_clicks_from_the_front_page() -> None:
    assert "(reference/papers.md)" in (DOCS / "index.md").read_text()
    assert "<!-- made from: statements -->" in (DOCS / "reference" / "papers.md").read_text()
    assert len(re.findall(r"`(?:src|tests|docs)/", papers.table(ROOT))) >= 180


def test_tests_that_a_page_names_are_links_that_read_as_sentences() -> None:
    shown = theorems.linked_tests("see `tests/oracles/test_order.py::test_nothing_moves`, `tests/browser.py`")
    assert shown.startswith("see nothing moves (`tests/oracles/test_order.py`)")
    assert shown.endswith("`tests/browser.py`")
    assert theorems.breakable("a/b_c.py") == "a/<wbr>b_<wbr>c.py"


def test_every_theorem_has_a_claim_a_source_and_a_file() -> None:
    found = theorems.collect(ROOT)
    assert len(found) >= 150
    assert {one.stage for one in found} <= set(theorems.STAGES)
    assert all(one.claim and one.source and (ROOT / one.file).is_file() for one in found)


def test_the_evidence_of_a_theorem_exists() -> None:
    named = set(re.findall(r"`((?:src|tests|docs|studies)/[\w/.-]+)`", theorems.theorems(ROOT)))
    assert len(named) > 100
    for target in named:
        assert (ROOT / target).exists(), target


def shunned() -> list[str]:
    """The words in the first column of the last table of docs/words.md."""
    table = (DOCS / "words.md").read_text().split("## Words that we do not use")[1]
    return [word for row in re.findall(r"^\| (?!not \||---)(.*?) \|", table, re.M) for word in row.split(", ")]


def unwanted(text: str) -> set[str]:
    """The words of a page that have another name here; in code and addresses they may stand."""
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.S)
    forms = {word: re.escape(word.removesuffix("e")) + r"(e|es|ed|ing|s|)" for word in shunned()}
    return {word for word, form in forms.items() if re.search(rf"\b{form}\b", prose, re.I)}


def test_pages_use_one_word_for_one_idea() -> None:
    pages = [*DOCS.rglob("*.md"), ROOT / "README.md"]
    prose = {page: page.read_text().split("## Words that we do not use")[0] for page in pages}
    assert {page: found for page, text in prose.items() if (found := unwanted(text))} == {}


def test_an_unwanted_word_would_be_found() -> None:
    assert len(shunned()) >= 12
    assert unwanted("Values are perturbed; `participant` and [x](participant.md) are names.") == {"perturb"}
    assert unwanted("Two respondents privatized theirs.") == {"respondent", "privatize"}
    assert unwanted("A neighboring value is randomised.") == {"neighbor", "randomise"}


def planted(folder: Path, page: str, style: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(f"<html><body id='top'>{page}</body></html>")
    (folder / "style.css").write_text(style)
    return folder


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/katex.js"></script>',
        '<script src="//cdn.example/katex.js"></script>',
        '<link rel="stylesheet" href="http://cdn.example/a.css">',
        '<img src="https://example/badge.svg">',
        '<img src="a.png" srcset="https://example/b.png 2x">',
        '<p style="background: url(https://example/b.png)"></p>',
    ],
)
def test_a_page_that_loads_from_elsewhere_would_be_found(page: str, tmp_path: Path) -> None:
    assert len(list(loads_from_elsewhere(planted(tmp_path, page)))) == 1


@pytest.mark.parametrize("style", ["@import 'https://x/a.css';", "a { src: url(//fonts.example/a.woff2) }"])
def test_a_style_that_loads_from_elsewhere_would_be_found(style: str, tmp_path: Path) -> None:
    assert len(list(loads_from_elsewhere(planted(tmp_path, "", style)))) == 1


def test_links_to_other_machines_are_no_loads_and_links_inside_are_followed(tmp_path: Path) -> None:
    right = '<a href="https://example/">x</a><a href="#top">y</a><a href="index.html#top">z</a>'
    assert faults(planted(tmp_path / "right", right)) == []
    wrong = '<a href="gone.html">x</a><a href="#gone">y</a><a href="index.html#gone">z</a>'
    assert len(list(dead_links(planted(tmp_path / "wrong", wrong)))) == 3


def test_a_folder_without_a_site_is_no_site(tmp_path: Path) -> None:
    assert len(faults(tmp_path)) == 1


def test_the_fonts_of_formulas_are_complete() -> None:
    style = (DOCS / "_static" / "katex" / "katex.min.css").read_text()
    fonts = re.findall(r"url\(([^)]*)\)", style)
    assert len(fonts) == 20
    assert all((DOCS / "_static" / "katex" / font).is_file() for font in fonts)


@needs_chromium
@pytest.mark.exhaust
def test_a_page_that_a_screen_reader_or_a_phone_cannot_show_would_be_found(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api")
    if AXE not in os.environ:
        pytest.skip(NO_AXE)
    page = "<!doctype html><html lang=en><title>x</title><main><h1>x</h1>{}</main></html>"
    (tmp_path / "good.html").write_text(page.format("<p>x</p>"))
    assert list(faults_in_a_browser(tmp_path)) == []
    (tmp_path / "bad.html").write_text(page.format("<img src=x><div style='width: 900px'>x</div>"))
    found = "\n".join(faults_in_a_browser(tmp_path))
    assert "bad.html, dark, 375 px: image-alt" in found and "pixels beyond the edge" in found and "good" not in found
