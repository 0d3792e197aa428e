"""Claim: 99 of 100 devices are answered within 250 ms at 1,157 reports a second, 1e8 a day, on two cores.

Open loop: report i is due at i / rate, whatever has become of the others, and its wait runs from then to its answer,
with a connection for each from an address of its own, as devices send. Twice: to the shuffler's port, and through the
shipped nginx, which ends TLS, as devices that spare their own cryptography (`tests/collect/deploy/tls_devices.py`).
SQLite, with fsync on. The devices run on the same cores, so the processor time of everybody is told beside the waits:
where all of it together is more than the machine has, the waits are of the machine and not of the shuffler.

    python benchmarks/collect_wait.py
    python benchmarks/collect_wait.py --rates 100 --seconds 5
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from time import perf_counter, process_time

from collect_doors import each_alone, proxying, tree_time
from collect_load import GROUP, prepare, request, role, serve, stored
from randomize_speed import machine

LIMIT = 0.25  # seconds, for 99 of 100
UNDER_WAY = 500  # devices that wait at once, at most; less than a server's queue of connections holds
QUANTILES = (0.5, 0.9, 0.99, 1.0)


def rated(template: Path, place: Path, parts: list[tuple[int, list[bytes]]], *, tls: bool) -> bool:
    """Print how long devices wait at each rate by one door; whether 99 of 100 were within the limit at all rates."""
    folder, name, kept = place / f"tls-{tls}", "TLS by nginx" if tls else "plain", True
    shutil.copytree(template, folder)
    with (
        serve(role("shuffler"), folder) as server,
        proxying("shuffler", place / f"proxy-{tls}", server.port) as (proxy, trusted),
    ):
        assert proxy.running
        port, trust = (proxy.port, trusted) if tls else (server.port, None)
        for rate, messages in parts:
            before, begin = [tree_time(server.id), tree_time(proxy.running.pid), process_time()], perf_counter()
            each = each_alone(port, [*map(request, messages)], trust, gap=1 / rate, at_once=UNDER_WAY)
            seconds, waits = perf_counter() - begin, sorted(each)
            after = [tree_time(server.id), tree_time(proxy.running.pid), process_time()]
            used = [a - b for a, b in zip(after, before, strict=True)]
            shares, each_takes = [a / seconds for a in used], [a / len(messages) * 1e6 for a in used]
            at = {share: waits[int(share * (len(waits) - 1))] for share in QUANTILES}
            kept = kept and at[0.99] <= LIMIT
            late = [number / rate for number, wait in enumerate(each) if wait > LIMIT]  # when they were due
            when = f", all that were due before second {late[0]:.1f} and after {late[-1]:.1f}" if late else ""
            told = ", ".join(f"{share:.0%} {wait * 1e3:.0f} ms" for share, wait in at.items())
            print(
                f"  {name}, {rate}/s offered, {len(waits) / seconds:.0f}/s answered, waits: {told}; "
                f"{1 - len(late) / len(waits):.1%} within {LIMIT * 1e3:.0f} ms{when}; of a core: "
                f"shuffler {shares[0]:.0%}, nginx {shares[1]:.0%}, devices {shares[2]:.0%}; a report: "
                f"{' + '.join(f'{a:.0f}' for a in each_takes)} us (load {os.getloadavg()[0]:.1f})",
                flush=True,
            )
    if stored(folder / "shuffler.sqlite") != sum(len(messages) for _, messages in parts):
        raise SystemExit("a report that was answered is not there.")
    return kept


def main() -> None:
    """Print the quantiles of waits at each rate, by both doors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", type=int, nargs="+", default=[300, 600, 1157, 1500], help="reports a second")
    parser.add_argument("--seconds", type=int, default=10, help="at each rate")
    options = parser.parse_args()
    print(f"{machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        place, template = Path(name), Path(name) / "template"
        template.mkdir()
        place.chmod(0o755)
        counts = [rate * options.seconds for rate in options.rates] * 2
        sealed = iter(prepare(template, slices=1, size=-(-sum(counts) // GROUP)).slices[0])
        parts = [(count // options.seconds, [next(sealed) for _ in range(count)]) for count in counts]
        half = len(options.rates)
        kept = [rated(template, place, parts[half * n : half * (n + 1)], tls=bool(n)) for n in range(2)]
    print("  within the limit" if all(kept) else "  a miss: at some rate more than 1 in 100 waited longer")


if __name__ == "__main__":
    main()
