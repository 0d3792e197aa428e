"""Claim: over kept connections a report costs the shuffler at most four times a bare loop of the same cryptography.

The bare loop opens, verifies and inserts, a hundred reports in a transaction, in one thread. In the same process and
run, with messages of the same kind: each step of the shuffler alone, then the whole service over kept connections,
one report in a request, thread by thread. Processor time; SQLite, with fsync on. What the clock makes the shuffler do
twice a second, however many reports come, is told apart.

    python benchmarks/collect_steps.py
    python benchmarks/collect_steps.py --reports 200
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from threading import Thread
from threading import enumerate as running_threads
from time import clock_gettime, pthread_getcpuclockid, sleep, thread_time

from starlette.applications import Starlette
from starlette.responses import Response

from collect_load import GROUP, database, drive, prepare, read_bench, request, yardstick
from dovetail.collect.http import Door, bind, uvicorn_server
from dovetail.collect.shuffler.app import shuffler_app
from dovetail.collect.shuffler.intake import ACCEPTED, CheckedReport, Reply
from dovetail.collect.shuffler.shuffler_config import assemble, load
from dovetail_protocol.messages import REPORTS
from randomize_speed import machine

CONNECTIONS = (1, 8, 32, 128)  # kept open
GROUPS = (1, 16, 100)  # reports in a transaction
BEATS = ("rounds", "delivery")  # threads that work by the clock


def used() -> Counter[str]:
    """Processor seconds of this process, by thread."""
    found = Counter[str]()
    for thread in running_threads():
        assert thread.ident is not None
        found[thread.name.partition("_")[0]] += clock_gettime(pthread_getcpuclockid(thread.ident))
    return found


@contextmanager
def serving(app: Starlette) -> Iterator[int]:
    """The port at which an app is served by a thread of this process."""
    server, bound = uvicorn_server(app), bind("127.0.0.1:0")
    thread = Thread(target=lambda: server.run(sockets=[bound]), name="the loop")
    thread.start()
    while not server.started:
        sleep(0.05)
    try:
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def driven(port: int, file: Path, messages: Sequence[bytes], connections: int) -> dict[str, float]:
    """Microseconds a report, by thread, while another process sends these over kept connections."""
    file.write_text("\n".join(request(each).hex() for each in messages))
    before = used()
    subprocess.run([sys.executable, __file__, "--drive", str(port), str(connections), str(file)], check=True)
    return {name: (found - before[name]) / len(messages) * 1e6 for name, found in used().items()}


def door_alone() -> Starlette:
    """An app whose one door accepts everything, without a look at it."""
    app = Starlette()
    accepted = Response(status_code=202)
    app.state.doors = (Door(REPORTS, 1 << 20, lambda _: nullcontext(), lambda _, tell: tell(accepted)),)
    return app


def show(name: str, microseconds: float, bare: float) -> None:
    print(f"  {name:44s} {microseconds:6.0f} us, {microseconds / bare:5.2f} of the bare loop", flush=True)


def measure(place: Path, parts: list[list[bytes]]) -> None:
    """Print the bare loop, the steps, and the service by its number of connections."""
    bench, file, count = read_bench(place), place / "requests", len(parts[0])
    with closing(database(place / "bare.sqlite")) as connection:
        yardstick(bench, connection, parts.pop())
        bare = yardstick(bench, connection, parts.pop())[1] / count * 1e6
    show("bare loop: open, verify, insert", bare, bare)
    service, _ = assemble(load(place / "shuffler.toml"), place)
    shuffler = service.shuffler

    def step(name: str, work: Callable[[], list[object]]) -> None:
        before = thread_time()
        work()
        show(name, (thread_time() - before) / count * 1e6, bare)

    with serving(door_alone()) as port:
        show("HTTP alone, over 32 kept connections", driven(port, file, parts[0], 32)["the loop"], bare)
    with serving(shuffler_app(service)) as port:
        check, now = shuffler.check, service.clock.now
        step("open, verify, look up in the roster", lambda: [check(m, now()) for m in parts[0]])
        for size in GROUPS:
            found = [check(message, now()) for message in parts.pop()]
            checked = [each for each in found if isinstance(each, CheckedReport)]
            groups = [checked[at : at + size] for at in range(0, count, size)]
            step(
                f"seal, and write in transactions of {size}",
                lambda groups=groups: [shuffler.commit(group, now()) for group in groups],
            )
        step("sign the answer", lambda: [shuffler.answer(m, Reply(ACCEPTED)) for m in parts[0]])
        for connections in CONNECTIONS:
            took = driven(port, file, parts.pop(), connections)
            told = {name: each for name, each in took.items() if name not in BEATS and each >= 0.5}
            show(f"the shuffler, over {connections} kept connections", sum(told.values()), bare)
            beats = sum(took[name] for name in BEATS) * count / 1e3
            by_thread = ", ".join(f"{name} {each:.0f}" for name, each in told.items())
            print(f"    {by_thread} us; beats {beats:.0f} ms in all (load {os.getloadavg()[0]:.1f})", flush=True)


def main() -> None:
    """Print the processor time of a report, step by step, beside that of a bare loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=1000, help="for each figure, a multiple of a hundred")
    parser.add_argument("--drive", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drive:
        port, connections, file = options.drive
        requests = [bytes.fromhex(line) for line in Path(file).read_text().split()]
        drive(int(port), requests, connections=int(connections))
        return
    print(f"{machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        parts = prepare(Path(name), slices=3 + len(CONNECTIONS) + len(GROUPS), size=options.reports // GROUP).slices
        measure(Path(name), parts)


if __name__ == "__main__":
    main()
