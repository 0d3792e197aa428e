"""Claim: the same protocols, equally accurate, orders of magnitude faster than multi-freq-ldpy and pure-ldp.

python benchmarks/peers_frequency.py [--peers DIR], where DIR is the site-packages folder of another environment that
has the peers (with xxhash below 4); missing ones are skipped. A peer that would need longer than --budget seconds
runs on fewer people and its time is scaled to n. Errors are compared on the same number of people: n times the mean
squared error over the symbols, unbiased and, because multi-freq-ldpy clips and renormalizes, also projected onto the
simplex.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from time import perf_counter

import numpy as np

from dovetail.core.entropy import system_entropy
from dovetail.core.stages import FrequencyRandomizer
from dovetail.estimate.frequency import estimate_frequencies, project_shares
from dovetail.randomize.hadamard import Hadamard
from dovetail.randomize.krr import KRR
from dovetail.randomize.local_hashing import LocalHashing
from dovetail.randomize.unary import Unary
from randomize_speed import best_of, machine

PILOT = 200
MOST_CELLS = 20_000_000  # unary reports of the peers are lists of vectors: 8 bytes per bit


@dataclass(frozen=True)
class Peer:
    """One protocol of one library, as a function from values to estimated shares."""

    library: str
    protocol: str
    run: Callable[[np.ndarray], np.ndarray]
    most: int


def multi_freq(k: int, epsilon: float) -> Iterator[Peer]:
    """GRR, OUE and OLH of multi-freq-ldpy."""
    oracles = "multi_freq_ldpy.pure_frequency_oracles"
    grr, ue, lh = (import_module(f"{oracles}.{name}") for name in ("GRR", "UE", "LH"))

    def run_grr(values: np.ndarray) -> np.ndarray:
        return grr.GRR_Aggregator_MI([grr.GRR_Client(int(v), k, epsilon) for v in values], k, epsilon)

    def run_oue(values: np.ndarray) -> np.ndarray:
        return ue.UE_Aggregator_MI([ue.UE_Client(int(v), k, epsilon, True) for v in values], epsilon, True)

    def run_olh(values: np.ndarray) -> np.ndarray:
        return lh.LH_Aggregator_MI([lh.LH_Client(int(v), k, epsilon, True) for v in values], k, epsilon, True)

    yield Peer("multi-freq-ldpy", "GRR", run_grr, sys.maxsize)
    yield Peer("multi-freq-ldpy", "OUE", run_oue, MOST_CELLS // k)
    yield Peer("multi-freq-ldpy", "OLH", run_olh, sys.maxsize)


def pure(k: int, epsilon: float) -> Iterator[Peer]:
    """GRR, OUE, OLH and Hadamard response of pure-ldp."""
    oracles = "pure_ldp.frequency_oracles"
    direct, unary, hashing, hadamard = (
        import_module(f"{oracles}.{name}")
        for name in ("direct_encoding", "unary_encoding", "local_hashing", "hadamard_response")
    )

    def collect(client: object, server: object, values: np.ndarray) -> np.ndarray:
        for value in values:
            server.aggregate(client.privatise(int(value)))  # type: ignore[attr-defined]
        shares = [server.estimate(x, suppress_warnings=True) for x in range(k)]  # type: ignore[attr-defined]
        return np.array(shares) / len(values)

    def same(x: int) -> int:
        return x

    def run_grr(values: np.ndarray) -> np.ndarray:
        return collect(direct.DEClient(epsilon, k, same), direct.DEServer(epsilon, k, same), values)

    def run_oue(values: np.ndarray) -> np.ndarray:
        return collect(
            unary.UEClient(epsilon, k, use_oue=True, index_mapper=same),
            unary.UEServer(epsilon, k, use_oue=True, index_mapper=same),
            values,
        )

    def run_olh(values: np.ndarray) -> np.ndarray:
        return collect(
            hashing.LHClient(epsilon, k, use_olh=True, index_mapper=same),
            hashing.LHServer(epsilon, k, use_olh=True, index_mapper=same),
            values,
        )

    def run_hadamard(values: np.ndarray) -> np.ndarray:
        server = hadamard.HadamardResponseServer(epsilon, k, index_mapper=same)
        client = hadamard.HadamardResponseClient(epsilon, k, server.get_hash_funcs(), index_mapper=same)
        return collect(client, server, values)

    for protocol, run in (("GRR", run_grr), ("OUE", run_oue), ("OLH", run_olh), ("Hadamard", run_hadamard)):
        yield Peer("pure-ldp", protocol, run, sys.maxsize)


def peers(k: int, epsilon: float) -> Iterator[Peer]:
    """All protocols of the libraries that are installed."""
    for make in (multi_freq, pure):
        try:
            yield from make(k, epsilon)
        except ImportError as error:
            print(f"{make.__name__} is skipped: {error}")


def ours(k: int, epsilon: float) -> dict[str, FrequencyRandomizer]:
    return {
        "GRR": KRR(k=k, epsilon=epsilon),
        "OUE": Unary(k=k, epsilon=epsilon),
        "OLH": LocalHashing(k=k, epsilon=epsilon),
        "Hadamard": Hadamard(k=k, epsilon=epsilon),
    }


def timed(run: Callable[[np.ndarray], np.ndarray], values: np.ndarray) -> tuple[float, np.ndarray]:
    start = perf_counter()
    shares = run(values)
    return perf_counter() - start, shares


def compare(k: int, epsilon: float, n: int, budget: float, generator: np.random.Generator) -> None:
    """Print one line per protocol and library."""
    law = 1.0 / np.arange(1, k + 1)  # Zipf, so that light symbols are there too
    values, rng, mine = generator.choice(k, size=n, p=law / law.sum()), system_entropy(), ours(k, epsilon)

    def estimate(randomizer: FrequencyRandomizer, people: np.ndarray) -> np.ndarray:
        return estimate_frequencies(randomizer, randomizer.randomize(people, rng)).value

    def error(shares: np.ndarray, people: np.ndarray) -> float:
        return float(people.size * np.mean((shares - np.bincount(people, minlength=k) / people.size) ** 2))

    seconds = {name: best_of(lambda r=r: estimate(r, values)) for name, r in mine.items()}  # type: ignore[misc]
    print(f"\nk = {k:,}, epsilon = {epsilon}, n = {n:,}; errors are n x mean squared error on `people` people")
    head = ("protocol", "peer", "people", "peer s", "ours s", "speedup", "peer", "ours", "peer proj.", "ours proj.")
    print("{:9} {:16} {:>9} {:>10} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10}".format(*head))
    for peer in peers(k, epsilon):
        try:
            peer.run(values[:PILOT])  # compiles
        except Exception as error:  # other people's code against newer versions of what it needs
            print(f"{peer.protocol:9} {peer.library:16} is skipped: {type(error).__name__}: {error}")
            continue
        pilot, _ = timed(peer.run, values[:PILOT])
        size = max(PILOT, min(n, peer.most, int(PILOT * budget / 3 / pilot)))
        people = values[:size]
        runs = [timed(peer.run, people) for _ in range(3)]
        spent, randomizer = min(t for t, _ in runs), mine[peer.protocol]
        theirs, own = [shares for _, shares in runs], [estimate(randomizer, people) for _ in range(3)]
        errors = [
            np.mean([error(f, people) for f in group])
            for group in (theirs, own, map(project_shares, theirs), map(project_shares, own))
        ]
        scaled = spent * n / size
        mark = " " if size == n else "*"
        print(
            f"{peer.protocol:9} {peer.library:16} {size:9,} {scaled:9.1f}{mark} {seconds[peer.protocol]:8.3f} "
            f"{scaled / seconds[peer.protocol]:8.0f} "
            "{:8.3f} {:8.3f} {:10.3f} {:10.3f}".format(*errors)
        )
    print("* scaled from a run on fewer people, because of --budget or (unary of multi-freq-ldpy) memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000, help="people")
    parser.add_argument("--k", type=int, nargs="+", default=[16, 1024], help="domain sizes")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--budget", type=float, default=120.0, help="seconds for the three runs of one peer")
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the values; our reports come from system_entropy()"
    )
    parser.add_argument("--peers", default=None, help="site-packages folder that has the peers")
    options = parser.parse_args()
    if options.peers:
        sys.path.append(options.peers)
    warnings.simplefilter("ignore")
    np.random.seed(options.seed)  # noqa: NPY002  the peers draw from the global generator
    print(f"{machine()}\nseed {options.seed}, best of 3")
    generator = np.random.default_rng(options.seed)
    for k in options.k:
        compare(k, options.epsilon, options.n, options.budget, generator)


if __name__ == "__main__":
    main()
