"""The console lines of docs/runbook.md are run as they stand, in their order, beside a shuffler."""

import re
import shlex
import subprocess
from pathlib import Path

import httpx
import pytest
from tests.collect.test_guide import PATH, guide, server, walk
from tests.waiting import PATIENCE, until

from dovetail.cli.main import invoke

RUNBOOK = Path(__file__).parent.parent.parent / "docs" / "runbook.md"
NOT_RUN = {  # a part of the line, and where it is run
    "pg_dump": "PostgreSQL's own program",
    "collect drop": "needs a lost round: tests/collect/shuffler/test_lost_rounds.py",
}
RUNNING = ("umask", "sqlite3")  # what is said while the shuffler runs


def lines() -> list[str]:
    """Everything after a prompt, without the remarks behind it."""
    blocks = re.findall(r"```console\n(.*?)```", RUNBOOK.read_text(), re.S)
    said = [re.sub(r"\s+#.*", "", line) for block in blocks for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in said if line.startswith("$ ")]


@pytest.mark.exhaust
def test_every_command_of_the_runbook_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = guide("none", {})[0]
    files = dict(re.findall(r"```toml\n# (\w+\.toml)\n(.*?)```", text, re.S))
    Path("shuffler.toml").write_text(files["shuffler.toml"])
    walk("".join(re.findall(r"```bash\n.*?```", text, re.S)[:3]).replace("seq 1 12", "seq 1 1"), {})
    assert invoke(["collect", "keys", "owner", "--out", "next.key"]) == 0
    todo = [line for line in lines() if not any(part in line for part in NOT_RUN)]
    assert len(todo) == len(lines()) - len(NOT_RUN) >= 9
    url = re.search(r'listen = "(.*?)"', files["shuffler.toml"])
    assert url is not None
    with server("dovetail collect shuffler shuffler.toml"):
        until(lambda: httpx.get(f"http://{url[1]}/readyz", timeout=PATIENCE).status_code == 200, httpx.HTTPError)
        backup = "\n".join(line for line in todo if line.startswith(RUNNING))
        subprocess.run(["bash", "-euc", backup], env=PATH, check=True, timeout=PATIENCE)
    head = ""
    for line in todo:
        if not line.startswith(RUNNING):
            capsys.readouterr()
            assert invoke(shlex.split(line.replace("3c98..", head))[1:]) == 0, line
            told = capsys.readouterr().out
            if " audit " in line:
                head = re.findall(r"[0-9a-f]{64}", told)[-1]
    assert Path("backup.sqlite").read_bytes()[:6] == b"SQLite" and Path("backup.sqlite").stat().st_mode & 0o77 == 0
    assert "dashboard" not in Path("tokens.txt").read_text() and Path("dashboard.token").exists()
    assert Path("campaign-2.toml").exists()
