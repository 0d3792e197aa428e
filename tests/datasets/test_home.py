"""Public data are found where they are, checked where their content is known, and named with their publisher."""

import threading
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dovetail.core.errors import DataError, MissingExtraError
from dovetail.datasets.download import DataSource, PublishedFile, data_folder, download, locate, require_columns

TEXT = b"a,b\n1,2\n"
HAND = DataSource("things", "Things are published by Nobody")


def source(address: str = "", content: bytes = TEXT) -> DataSource:
    return DataSource("things", HAND.where, {"one.csv": PublishedFile(address, sha256(content).hexdigest())})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DOVETAIL_DATA", str(tmp_path))
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "one.csv").write_bytes(TEXT)
    return tmp_path


def test_files_are_found_by_path_by_folder_and_at_home(home: Path) -> None:
    file = home / "things" / "one.csv"
    assert locate(source(), "one.csv", path=file) == locate(source(), "one.csv", path=file.parent) == file
    assert locate(source(), "one.csv", path=None) == locate(HAND, "first.csv", "one.csv", path=None) == file
    assert data_folder("things", "nowhere") == file.parent


def test_what_is_not_there_says_where_it_comes_from(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (None, home / "things", home / "things" / "two.csv"):
        with pytest.raises(DataError, match=r"two\.csv: no such file\. Things are published by Nobody\.$"):
            locate(HAND, "two.csv", path=path)
    monkeypatch.delenv("DOVETAIL_DATA")
    with pytest.raises(DataError, match=r"DOVETAIL_DATA must name the folder that holds things/\. Things"):
        locate(HAND, "one.csv", path=None)


def test_a_changed_file_is_refused_at_home_and_read_by_path(home: Path) -> None:
    file = home / "things" / "one.csv"
    file.write_bytes(TEXT + b"3,4\n")
    with pytest.raises(DataError, match="is not the published file"):
        locate(source(), "one.csv", path=None)
    assert locate(source(), "one.csv", path=file) == file


def test_missing_columns_are_named() -> None:
    require_columns(Path("x.csv"), ["a", "b", "c"], ["c", "a"], source=HAND)
    with pytest.raises(DataError, match=r"x\.csv: has no column 'b' and 1 more\. Things"):
        require_columns(Path("x.csv"), ["a"], ["a", "b", "c"], source=HAND)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(home / "things")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/one.csv"
    server.shutdown()
    server.server_close()
    thread.join()


def test_downloads_are_checked(address: str, tmp_path: Path) -> None:
    pytest.importorskip("pooch")
    place = download(source(address), tmp_path / "new")
    assert (place / "one.csv").read_bytes() == TEXT
    with pytest.raises(DataError, match="not the file with SHA-256"):
        download(source(address, b"another"), tmp_path / "other")
    assert not (tmp_path / "other" / "things" / "one.csv").exists()


def test_an_address_that_does_not_answer_is_one_line(address: str, tmp_path: Path) -> None:
    pytest.importorskip("pooch")
    with pytest.raises(DataError, match=r"cannot be fetched to .* \(HTTPError\)"):
        download(source(address + ".gz"), tmp_path / "new")


def test_what_cannot_be_fetched_is_had_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="must be fetched by hand"):
        download(HAND, tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[data\]"):
        download(source(), tmp_path)
