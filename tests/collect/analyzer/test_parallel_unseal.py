"""Several processes open a batch as one does; one that dies costs a try, and none outlives the analyzer."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.collect.analyzer import world as analysis
from tests.waiting import until

from dovetail.collect.analyzer import batch_intake
from dovetail.collect.analyzer import campaigns as parallel_unseal
from dovetail.collect.analyzer.analyzer import AnalyzerConfig, load
from dovetail.collect.analyzer.campaigns import Piece, UnsealingProcesses
from dovetail.collect.files import save_keys
from dovetail.collect.http import Refusal

CONFIG = 'schema_version = 1\ncampaigns = ["campaign.toml"]\nkeys = "analyzer.key"\nworkers = 2\n'


@pytest.fixture
def small_pieces(monkeypatch):
    """Batches of forty are large, in pieces of seven."""
    monkeypatch.setattr(parallel_unseal, "LARGE", 40)
    monkeypatch.setattr(batch_intake, "AT_ONCE", 7)


def site(folder: Path, asked) -> AnalyzerConfig:
    (folder / "campaign.toml").write_bytes(asked.signed)
    (folder / "analyzer.toml").write_text(CONFIG)
    save_keys(analysis.ANALYZER, folder / "analyzer.key")
    return load(folder / "analyzer.toml")


def mixed_batch(asked, n: int) -> bytes:
    """Reports of every kind: copies, and what does not open."""
    sealed = analysis.seal(asked, [i % 4 for i in range(n)], round=1)
    return analysis.batch(asked, [*sealed, *sealed[:3], *(bytes(len(sealed[0])) for _ in range(2))])


def counted(world):
    (batch,) = world.store.batches("commute")
    return replace(batch, counted_at=0.0), world.store.tallies("commute", batch.id), list(world.store.aside(batch.id))


@pytest.mark.exhaust
@pytest.mark.usefixtures("small_pieces")
def test_a_batch_is_counted_alike_by_one_process_and_by_several(tmp_path):
    asked = analysis.campaign()
    config, wire = site(tmp_path, asked), mixed_batch(asked, 100)
    alone, many = analysis.World((asked,)), analysis.World((asked,))
    many.analyzer._processes = UnsealingProcesses(config, tmp_path, config.workers)
    for world in (alone, many):
        assert world.analyzer.receive(wire) == "counted"
    assert counted(alone) == counted(many)
    batch, _, aside = counted(many)
    assert (batch.n, batch.rejected) == (100, {"copy": 4, "seal": 1}) and len(aside) == 5


@pytest.mark.exhaust
@pytest.mark.usefixtures("small_pieces")
def test_a_batch_whose_process_dies_is_not_counted_and_counts_when_it_comes_again(tmp_path, monkeypatch):
    asked = analysis.campaign()
    config, wire, world = site(tmp_path, asked), mixed_batch(asked, 60), analysis.World((asked,))
    world.analyzer._processes = UnsealingProcesses(config, tmp_path, config.workers)
    with monkeypatch.context() as patched:
        patched.setattr(parallel_unseal, "_unseal", die)
        with pytest.raises(Refusal, match="nothing was counted") as told:
            world.analyzer.receive(wire)
    assert told.value.kind == "unavailable" and world.store.batches("commute") == []
    assert world.analyzer.receive(wire) == "counted" and world.store.batches("commute")[0].n == 60


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


HOLD = """
import sys
from pathlib import Path
from dovetail.collect.analyzer import campaigns as parallel_unseal
from dovetail.collect.analyzer.analyzer import load
from dovetail.collect.files import load_campaign
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    processes = parallel_unseal.UnsealingProcesses(load(folder / "analyzer.toml"), folder, 2)
    with processes._started(load_campaign(folder / "campaign.toml").digest, 1) as unsealed:
        import numpy as np
        piece = parallel_unseal.Piece([], [bytes(100)], np.zeros(1, dtype=bool))
        for _ in unsealed([piece] * 8):
            pass
        import multiprocessing
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        sys.stdin.read()
"""


@pytest.mark.exhaust
def test_no_process_that_holds_keys_outlives_a_killed_analyzer(tmp_path):
    site(tmp_path, analysis.campaign())
    (tmp_path / "hold.py").write_text(HOLD)
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "hold.py"), str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    children = [int(word) for word in parent.stdout.readline().split()]
    assert len(children) == 2
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    until(lambda: all(ended(child) for child in children))


def ended(process: int) -> bool:
    """Whether it has gone, or waits to be buried."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Pool:
    """Finishes a piece only when its result is asked for; counts what is under way."""

    def __init__(self) -> None:
        self.under_way, self.most = 0, 0

    def submit(self, _, digest, round, sealed, copies):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        pool = self

        class Later(Future):
            def result(self):
                pool.under_way -= 1
                return sealed

        return Later()


def test_results_come_in_the_order_of_the_batch_and_few_pieces_are_under_way():
    pool, processes = Pool(), UnsealingProcesses(workers=3)
    pieces = [Piece([], [bytes([number])], np.zeros(1, dtype=bool)) for number in range(50)]
    found = [(piece.sealed, opened) for piece, opened in processes._in_order(pool, b"", 1, iter(pieces))]
    assert found == [(piece.sealed, piece.sealed) for piece in pieces]
    assert pool.most == 6 and pool.under_way == 0


@pytest.mark.exhaust
@pytest.mark.usefixtures("small_pieces")
def test_a_small_batch_and_one_worker_start_no_process(tmp_path, monkeypatch):
    asked = analysis.campaign()
    config = site(tmp_path, asked)
    monkeypatch.setattr(UnsealingProcesses, "_started", lambda *_: pytest.fail("processes were started"))
    for workers, n in ((2, 20), (1, 60)):
        world = analysis.World((asked,))
        world.analyzer._processes = UnsealingProcesses(config, tmp_path, workers)
        assert world.analyzer.receive(mixed_batch(asked, n)) == "counted"
