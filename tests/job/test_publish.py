"""A folder of results is complete or not there, and nobody's documents are overwritten."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.core.errors import OutputError, StorageError
from dovetail.ledger.files import publish


def write(target: Path, text: str, *, force: bool = False) -> None:
    with publish(target, force=force) as folder:
        (folder / "report.json").write_text(text)


def test_results_appear_at_once_and_leave_no_scratch(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "out", "one")
    assert (tmp_path / "deep" / "out" / "report.json").read_text() == "one"
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]


def test_a_failure_leaves_nothing_and_keeps_the_old_report(tmp_path: Path) -> None:
    write(tmp_path / "out", "old")
    with pytest.raises(RuntimeError), publish(tmp_path / "out", force=True) as folder:
        (folder / "report.json").write_text("half")
        raise RuntimeError
    with pytest.raises(StorageError, match="No space left"), publish(tmp_path / "new", force=False):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert (tmp_path / "out" / "report.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_existing_report_needs_force_and_other_folders_are_never_replaced(tmp_path: Path) -> None:
    write(tmp_path / "out", "one")
    with pytest.raises(OutputError, match="use --force"):
        write(tmp_path / "out", "two")
    write(tmp_path / "out", "two", force=True)
    assert (tmp_path / "out" / "report.json").read_text() == "two"
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "thesis.txt").write_text("dear")
    with pytest.raises(OutputError, match=r"holds 'thesis\.txt', which is no report"):
        write(documents, "x", force=True)
    with pytest.raises(OutputError, match="is not a folder"):
        write(documents / "thesis.txt", "x", force=True)
    assert (documents / "thesis.txt").read_text() == "dear"
    (tmp_path / "out" / "notes.txt").write_text("dear, too")
    with pytest.raises(OutputError, match=r"holds 'notes\.txt'"):
        write(tmp_path / "out", "three", force=True)


def test_an_interruption_between_the_two_renames_keeps_the_old_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "out", "old")
    rename = Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == "new":
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", "new", force=True)
    assert (tmp_path / "out" / "report.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write")
def test_a_place_that_cannot_be_written_is_named() -> None:
    with pytest.raises(OutputError, match=r"/proc/out: cannot be written"):
        write(Path("/proc/out"), "x")


def test_a_killed_run_leaves_no_visible_folder(tmp_path: Path) -> None:
    program = (
        "import signal, sys; from pathlib import Path; from dovetail.ledger.files import publish\n"
        "with publish(Path(sys.argv[1]), force=False) as folder:\n"
        "    (folder / 'report.json').write_text('half'); print('ready', flush=True); signal.pause()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not (tmp_path / "out").exists()
    write(tmp_path / "out", "whole")
    assert (tmp_path / "out" / "report.json").read_text() == "whole"
