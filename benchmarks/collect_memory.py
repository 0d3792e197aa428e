"""Claim: the memory of a shuffler that takes reports hardly grows from 100,000 devices on, however many report.

Reports of distinct devices, one in a request over kept connections, as in `collect_doors.py`, and the memory of the
shuffler after each twentieth of them; the roster of all of them is there at first. What may grow: the rate limits of
the 100,000 devices heard of last, and SQLite's cache of 32 MiB for each connection to it. At the end the bytes that a
report takes in the database.

    python benchmarks/collect_memory.py
    python benchmarks/collect_memory.py --reports 1000000
"""

import argparse
import os
import tempfile
from itertools import islice
from pathlib import Path

from collect_doors import held
from collect_load import drive, founded, request, role, serve
from dovetail_protocol.messages import plain, seal
from randomize_speed import machine

SLICES = 20
CONNECTIONS = 128


def main() -> None:
    """Print the memory of a shuffler by the number of reports that it has taken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=int, default=200_000, help=f"a multiple of {SLICES}")
    size = parser.parse_args().reports // SLICES
    print(f"{machine()}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = founded(folder, SLICES * size)
        campaign, devices = world.campaign, iter(world.devices)
        report = plain(campaign, campaign.mechanism.encode(1))
        with serve(role("shuffler"), folder) as server:
            print(f"  {held(server.id) / 1e6:.0f} MB at first", flush=True)
            for number in range(1, SLICES + 1):
                signing = [device.signing for device in islice(devices, size)]
                messages = [request(seal(campaign, 1, report, key)) for key in signing if key is not None]
                drive(server.port, messages, connections=CONNECTIONS)
                print(f"  {held(server.id) / 1e6:.0f} MB after {number * size} reports", flush=True)
        taken = (folder / "shuffler.sqlite").stat().st_size
        print(f"  the database has {taken / (SLICES * size):.0f} bytes for each report")


if __name__ == "__main__":
    main()
