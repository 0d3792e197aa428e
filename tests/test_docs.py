"""Documentation that cannot lie: what it shows runs, what it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")])


def test_the_lines_of_the_readme_run() -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code is not None
    lines = [line for line in code.group(1).splitlines() if line.strip()]
    assert len(lines) <= 15
    exec(compile(code.group(1), "README.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_difference_from_a_paper_has_a_test() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "errata.md").read_text())
    assert len(named) >= 10
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), (file, test)


def test_contributing_is_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) < 60


def test_the_project_speaks_of_itself_alone() -> None:
    for page in [*PAGES, *(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for line in page.read_text().splitlines():
            assert not re.search(r"(?<![\w`/])/(work|farm|home|root)/", line) or page.name == "test_docs.py", (
                page,
                line,
            )
