"""Documentation that cannot lie: what it shows runs, what it names exists."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.test_architecture import LAYERS

from dovetail.core.stages import ATTACKS, RANDOMIZERS, SHUFFLERS
from dovetail.randomize.sampling.vector_randomizer import VECTOR_RANDOMIZERS

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md"), ROOT / "device" / "README.md"]
)
REGISTRIES = (RANDOMIZERS, VECTOR_RANDOMIZERS, SHUFFLERS, ATTACKS)
# the changelog also says what is called otherwise by now
PRESENT = [page for page in PAGES if page.name != "CHANGELOG.md"]


def blocks(page: Path) -> list[str]:
    """The Python in a page."""
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


@pytest.mark.parametrize("number", range(len(blocks(ROOT / "README.md"))))
def test_the_lines_of_the_readme_run(number: int) -> None:
    code = blocks(ROOT / "README.md")[number]
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    exec(compile(code, "README.md", "exec"), {})


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something inside one; entry point groups are names too."""
    if name in {registry.group for registry in REGISTRIES}:
        return True
    parts = name.replace("dt.", "dovetail.", 1).split(".") if name.startswith("dt.") else name.split(".")
    found: Any = import_module(parts[0])
    for place, part in enumerate(parts[1:], start=2):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = import_module(".".join(parts[:place]))
            except ModuleNotFoundError:
                return False
    return True


def dotted_names(text: str) -> set[str]:
    """Names such as `dovetail.leak.qif` and `dt.run`."""
    return set(re.findall(r"(?<![\w/.-])(?:dovetail|dovetail_protocol|dovetail_device|dt)(?:\.[A-Za-z_]\w*)+", text))


def python_files(text: str) -> set[str]:
    """Paths such as `src/dovetail/cli/run.py` and `leak/qif/prior.py`; capitals stand for a name of your own."""
    return {
        path for path in re.findall(r"(?<![\w/.])\w+(?:/\w+)+\.py\b", text) if not re.search(r"/[A-Z]+\.py", path)
    }


def test_every_name_in_the_documentation_exists() -> None:
    named = {(page, name) for page in PRESENT for name in dotted_names(page.read_text())}
    gone = {name for name in {name for _, name in named} if not resolves(name)}
    assert [(page, name) for page, name in named if name in gone] == []


def test_a_name_that_is_gone_would_be_found() -> None:
    assert dotted_names("`dovetail.leak.gone`, dt.run(1).x, not a/dovetail.toml") == {"dovetail.leak.gone", "dt.run"}
    assert resolves("dovetail.leak.qif.inputs") and resolves("dt.KRR.randomize") and resolves("dovetail.attacks")
    assert not resolves("dovetail.leak.gone") and not resolves("dt.device")


def test_every_new_name_in_the_changelog_exists() -> None:
    cells = re.findall(r"^  \| .* \| (.*) \|$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    named = {name for cell in cells for name in dotted_names(cell)}
    assert len(named) >= 10
    assert {name for name in named if not resolves(name)} == set()


def test_every_file_in_the_documentation_exists() -> None:
    homes = [ROOT, ROOT / "src" / "dovetail", ROOT / "device" / "src"]
    named = {(page, path) for page in PRESENT for path in python_files(page.read_text())}
    assert [one for one in named if not any((home / one[1]).exists() for home in [*homes, one[0].parent])] == []


def test_a_file_that_is_gone_would_be_found() -> None:
    assert python_files("`src/dovetail/gone.py`, `randomize/NAME.py`") == {"src/dovetail/gone.py"}


def test_the_layers_in_contributing_are_those_that_are_tested() -> None:
    tables = re.findall(r"```\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    assert [line.split() for line in tables[1].splitlines()] == LAYERS


def test_the_samples_name_every_mechanism() -> None:
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in (ROOT / "docs" / "samples").glob("*.toml"))))
    assert {name for registry in REGISTRIES for name in registry.names()} <= words


def test_links_between_pages_lead_somewhere() -> None:
    links = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text())]
    assert len(links) > 100 and [link for link in links if not (link[0].parent / link[1]).exists()] == []


def test_every_difference_from_a_paper_has_a_test() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "errata.md").read_text())
    assert len(named) >= 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), (file, test)


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 90


@pytest.mark.parametrize(("page", "most"), [("README.md", 700), ("docs/index.md", 250)])
def test_front_pages_are_short(page: str, most: int) -> None:
    assert 0.5 * most < words_of((ROOT / page).read_text()) <= most


def words_of(text: str) -> int:
    """The words of a page as it is read: no addresses, no comments, nothing that a directive is told."""
    for gone in (r"<!--.*?-->", r"(?<=\])\([^)]*\)", r"^:[\w-]+:.*?$", r"^```\{toctree\}.*?^```", r"^[`:]{3,}.*?$"):
        text = re.sub(gone, "", text, flags=re.S | re.M)
    return len(re.findall(r"[^\W_]\S*", text))


def test_words_are_counted_as_they_are_read() -> None:
    assert words_of("# One\n\n[two three](a/b.md), `four` <!-- no -->\n```sh\nfive # 6\n```\n:class: no\n") == 6


def test_the_readme_shows_what_its_lines_print(capsys: pytest.CaptureFixture[str]) -> None:
    [shown] = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    exec(compile(blocks(ROOT / "README.md")[0], "README.md", "exec"), {})
    assert capsys.readouterr().out == shown


def test_the_project_speaks_of_itself_alone() -> None:
    for page in [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for line in page.read_text().splitlines():
            assert not re.search(r"(?<![\w`/])/(work|farm|home|root)/", line) or page.name == "test_docs.py", (
                page,
                line,
            )


def figures(text: str) -> set[str]:
    """Numbers as they are written, such as 1,157 and .7 and 1e5."""
    return set(re.findall(r"(?<![\w.,])\.?\d(?:[\d,.]*\d)?(?:e\d+)?", text))


def test_every_figure_of_the_service_at_scale_stands_in_the_row_of_its_benchmark() -> None:
    rows = dict(re.findall(r"^\| `(\w+\.py)` \|(.*)\|$", (ROOT / "benchmarks" / "README.md").read_text(), re.M))
    section = (ROOT / "docs" / "scale.md").read_text().partition("## A collection of 1e8 reports a day")[2]
    head, _, *measured = [
        line.split("|")[2] for line in section.partition("\n## ")[0].splitlines() if line[:1] == "|"
    ]
    usual = re.findall(r"`(\w+\.py)`", head)
    assert len(measured) >= 8 and len(figures(" ".join(measured))) >= 30
    for part in measured:
        told = " ".join(rows[name] for name in re.findall(r"`(\w+\.py)`", part) or usual)
        assert (part, figures(part) - figures(told)) == (part, set())
    assert figures("1,157/s, .7 of 1e5, 162 bytes in `x1.py`") == {"1,157", ".7", "1e5", "162"}
