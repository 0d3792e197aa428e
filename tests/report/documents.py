"""Privacy reports as they are loaded from report.json: a rehearsal, a release, one with numbers, and a stream."""

import math
from typing import Any

Document = dict[str, Any]

N = 6366
KEEP = 0.8807970779778824  # k-RR, k = 2, epsilon = 2
UNMIXED = "amplification theorems need a uniform shuffle; this order is not one (FMT 2021, Theorem 3.2)"
NO_TRUTH = "an attack is measured against the truth, which a release does not hold"
SIMULATED = "drawn from a simulation seed: protects nobody"
AGES = [("17.5", 139, 0.0935), ("22.0", 1800, 0.2256), ("27.0", 1931, 0.3278)]
AGES += [("32.0", 1069, 0.3976), ("37.0", 634, 0.4259), ("42.0", 793, 0.3859)]


def absent(reason: str) -> Document:
    return {"value": None, "reason": reason}


def central(all_: float, honest: float, n: int = N, honest_n: int = 6000, colluding: float = 2.0) -> Document:
    return {
        "epsilon": honest,
        "all": all_,
        "honest": honest,
        "colluding": colluding,
        "delta": 1e-6,
        "n": n,
        "honest_n": honest_n,
        "method": "stronger clones",
        "source": "Feldman, McMillan, Talwar (2023), Stronger Privacy Amplification by Shuffling, Theorem 3.2",
        "numeric_lower": honest * 0.997,
        "attack_lower": honest * 0.71,
        "lines": [
            f"honest shuffler, all {n:,} people honest: ({all_:.4g}, 1e-06)-differential privacy",
            f"honest shuffler, only {honest_n:,} people honest: ({honest:.4g}, 1e-06)-differential privacy",
            f"shuffler colludes: the local guarantee remains, epsilon {colluding:.4g}",
        ],
    }


def order(shuffler: str, alpha: float | str, **summary: Any) -> Document:
    return {
        "alpha": alpha,
        "shuffler": shuffler,
        "theta_n": summary.pop("theta_n", absent("this shuffler has no dispersion")),
        "source": "Meehan, Roy Chowdhury, Chaudhuri, Jha (2022), Privacy Implications of Shuffling, Definition 4.3",
        "caveats": [],
        "summary": summary or absent("no groups"),
    }


def guessed(n: int) -> float:
    """Vulnerability of n shuffled binary values without noise: 1/2 + C(n-1, floor((n-1)/2)) / 2^n."""
    half = (n - 1) // 2
    return 0.5 + math.exp(math.lgamma(n) - math.lgamma(half + 1) - math.lgamma(n - half) - n * math.log(2))


def leakage(n: int) -> Document:
    sizes = [size for size in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if size < n] + [n]
    mixed = [0.5 + (guessed(size) - 0.5) * (2 * KEEP - 1) for size in sizes]
    return {
        "prior": 0.5,
        "randomized": KEEP,
        "shuffled": guessed(n),
        "randomized_shuffled": mixed[-1],
        "error_bound": 2.2e-16,
        "method": "closed form",
        "rounding": "upwards",
        "source": "Jurado, Gonze, Alvim, Palamidessi (2023), CSF, Theorem 19",
        "curve": {"n": sizes, "randomized_shuffled": mixed, "shuffled": [guessed(size) for size in sizes]},
        "prior_law": "uniform",
        "at_hand": {
            "prior_law": "empirical",
            "prior": 0.6775,
            "randomized": 0.8808,
            "randomized_shuffled": 0.67752,
            "method": "exact sum",
        },
    }


def unshuffled(reason: str) -> Document:
    missing = {key: absent(reason) for key in ("shuffled", "randomized_shuffled", "curve")}
    own = leakage(1)
    return own | missing | {"at_hand": own["at_hand"] | {"randomized_shuffled": absent(reason)}}


def attack(success: float, name: str = "majority vote") -> Document:
    return {
        "name": name,
        "success": success,
        "chance": 0.6775,
        "interval": [success - 0.0221, success + 0.0213],
        "level": 0.95,
        "vulnerable": 0.0425,
        "vulnerable_at": 0.9,
        "targets": 400,
        "trials": 50,
        "votes": 25,
        "bound": 0.8912,
        "bound_by": "Bayes vulnerability of one report",
    }


def attacked(success: float, learned: float) -> Document:
    """What a rehearsal measures on itself, as the parts of an entry."""
    learnability = {"by": "age", "error": learned, "identity": 0.06, "uniform": 0.37, "groups": 6, "draws": 10}
    unmixed = {"name": "de Finetti", **absent("this order is released")}
    return {
        "attack": attack(success),
        "attacks": [attack(success), attack(success - 0.1234, "correlation"), unmixed],
        "learnability": [learnability],
    }


def share(n: int, yes: float, shift: float, *, truth: bool, bias: float = 0.0) -> Document:
    error = math.sqrt(KEEP * (1 - KEEP) / n) / (2 * KEEP - 1)
    value = [1 - yes - shift * error, yes + shift * error]
    reach = 1.959964 * error + bias
    known: Document = {"truth": [1 - yes, yes]} if truth else {}
    return {
        "labels": ["no", "yes"],
        "value": value,
        "possible": value,
        "standard_error": [error, error],
        "population_error": [math.sqrt(error**2 + yes * (1 - yes) / n)] * 2,
        "interval": [[middle - reach, middle + reach] for middle in value],
        "bias_bound": bias,
        "n": n,
        **known,
    }


def estimates(*, truth: bool, groups: bool, bias: float = 0.0, off: float = 0.0) -> Document:
    shifts = [0.4, -1.1, 0.7, 0.2, -0.5, 1.6]
    return {
        "measure": "share",
        "level": 0.95,
        "overall": share(N, 0.3225, 0.6, truth=truth),
        "groups": [
            {"by": "age", "group": age, **share(n, yes, shift + off, truth=truth, bias=bias)}
            for (age, n, yes), shift in zip(AGES, shifts, strict=True)
        ]
        if groups
        else absent("a uniform shuffle leaves no order to tell groups apart"),
        "withheld": [{"by": "education", "groups": 2, "people": 31}],
    }


def entry(shuffler: str, **parts: Any) -> Document:
    local = {"epsilon": 2.0, "delta": 0.0, "source": "Warner (1965)", "caveats": [SIMULATED]}
    return {"shuffler": shuffler, "local": local, **parts}


def rehearsal() -> Document:
    """What `dovetail demo` shows: a survey with known truth and four shufflers side by side."""
    within = entry(
        "within_groups",
        central=central(0.4183, 0.4317, n=139, honest_n=131),
        order=order("within_groups", 0.0, width=0, sensitivity=0, components=6, largest_group=1931),
        leakage=leakage(139),
        **attacked(0.6812, 0.012),
        estimates=estimates(truth=True, groups=True),
    )
    document = {
        "schema_version": 1,
        "title": "Extramarital affairs survey, 1974",
        "mode": "rehearsal",
        "entropy": "simulation",
        "seed": 1,
        "watermark": "REHEARSAL: contains the truth, drawn from a simulation seed; protects nobody.",
        "version": "0.1.0",
        "collection": {
            "n": N,
            "private": "affairs",
            "kind": "categorical",
            "categories": ["no", "yes"],
            "public": ["age", "education"],
        },
        "randomizer": {"name": "krr", "epsilon": 2.0, "parameters": {"k": 2, "keep": KEEP}},
        "comparison": [
            entry(
                "identity",
                central=absent("the order is released as it is: nothing is amplified"),
                order=order("identity", "inf"),
                leakage=unshuffled("nothing is shuffled: the local guarantee is all there is"),
                **attacked(0.8795, 0.095),
                estimates=estimates(truth=True, groups=True),
            ),
            entry(
                "uniform",
                central=central(0.0713, 0.0736),
                order=order("uniform", 0.0),
                leakage=leakage(N),
                **attacked(0.6791, 0.091),
                estimates=estimates(truth=True, groups=False),
            ),
            within,
            entry(
                "mallows",
                central=absent(UNMIXED),
                order=order("mallows", 4.0, theta_n=812.3456, width=3731, sensitivity=2.1e6),
                leakage=unshuffled(UNMIXED),
                **attacked(0.6934, 0.034),
                estimates=estimates(truth=True, groups=True, bias=0.004, off=0.3),
            ),
        ],
        "assumptions": [
            "The shuffler does not share the order with anybody; otherwise only the local guarantee remains.",
            "At least 6,000 of the 6,366 people follow the protocol.",
            "Every person sends one report to this collection.",
            "The public columns age and education are known to everybody and need no protection.",
        ],
        "steps": [
            {
                "stage": "randomize",
                "what": "Each answer is kept with probability 0.8808 and replaced by the other one otherwise.",
                "guarantee": "Local differential privacy with epsilon 2.",
                "theorem": "Warner (1965); Kairouz, Oh, Viswanath (2016), Section 3",
            },
            {
                "stage": "shuffle",
                "what": "Reports are permuted uniformly among people of the same age.",
                "guarantee": "Order privacy with alpha 0 inside every age group.",
                "theorem": "Meehan et al. (2022), Definition 4.3",
            },
            {
                "stage": "estimate",
                "what": "Counts are corrected for the known noise.",
                "guarantee": "Post-processing: nothing further is revealed.",
                "theorem": "Dwork and Roth (2014), Proposition 2.1",
            },
        ],
        "release": absent("a rehearsal releases nothing"),
        "files": {
            "report_json": "report.json",
            "report_html": "report.html",
            "sanitized": absent("a rehearsal writes no table"),
        },
        "config": {
            "schema_version": 1,
            "mode": "rehearsal",
            "seed": 1,
            "data": {"private": "affairs", "public": ["age", "education"], "categories": ["no", "yes"]},
            "randomize": {"randomizer": "krr", "epsilon": 2.0},
            "shuffle": {"shuffler": "within_groups", "groups": {"labels": "age"}},
            "promise": {"delta": 1e-6, "honest": 6000},
        },
    }
    return document | within


def release() -> Document:
    """What leaves the house: no truth, no attack, no comparison."""
    document = rehearsal()
    return document | {
        "mode": "release",
        "entropy": "device",
        "seed": None,
        "watermark": None,
        "shuffler": "mallows",
        "local": {"epsilon": 2.0, "delta": 0.0, "source": "Warner (1965)", "caveats": []},
        "central": absent(UNMIXED),
        "order": order("mallows", 4.0, theta_n=812.3456, width=3731, sensitivity=2.1e6, components=1),
        "leakage": unshuffled(UNMIXED),
        **{key: absent(NO_TRUTH) for key in ("attack", "attacks", "learnability")},
        "estimates": estimates(truth=False, groups=True, bias=0.004),
        "comparison": [],
        "release": {"number": 2, "releases": 2, "total_epsilon": 4.0},
        "files": {"report_json": "report.json", "report_html": "report.html", "sanitized": "sanitized.parquet"},
    }


def numeric() -> Document:
    """A release of a mean."""
    error = 0.0731
    whole = {
        "labels": ["mean"],
        "value": [29.1234],
        "possible": [29.1234],
        "standard_error": [error],
        "population_error": [0.1126],
        "interval": [[28.9801, 29.2667]],
        "bias_bound": 0.0,
        "n": N,
    }
    return release() | {
        "title": "Age of the respondents",
        "shuffler": "uniform",
        "collection": {
            "n": N,
            "private": "age",
            "kind": "numeric",
            "lower": 17.5,
            "upper": 42.0,
            "grid": 50,
            "public": [],
        },
        "local": {"epsilon": 1.0, "delta": 0.0, "source": "Dwork et al. (2006), Proposition 1", "caveats": []},
        "randomizer": {"name": "laplace", "epsilon": 1.0, "parameters": {"scale": 24.5}},
        "central": central(0.0311, 0.0322, colluding=1.0),
        "order": order("uniform", 0.0),
        "leakage": absent("computed for categorical reports only"),
        "estimates": {
            "measure": "mean",
            "level": 0.95,
            "overall": whole,
            "groups": absent("no public column was declared"),
            "withheld": [],
        },
    }


def stream(count: int = 8, silent: tuple[int, ...] = (3,), *, truth: bool = False) -> Document:
    """A release (or a rehearsal) of a mean round by round."""
    error, stamps = 2.0, list(range(1, count + 1))
    value = [None if t in silent else 29.0 + math.sin(t) for t in stamps]
    reach = 1.959964 * error + 0.1
    series: Document = {
        "t": stamps,
        "value": value,
        "standard_error": [None if v is None else error for v in value],
        "interval": [None if v is None else [v - reach, v + reach] for v in value],
        "bias_bound": [None if v is None else 0.1 for v in value],
        "n": [0 if v is None else 64 for v in value],
        "absent": [1] * count,
        "held_back": [63 if v is None else 0 for v in value],
    }
    if truth:
        series["truth"] = [None if v is None else 29.0 for v in value]
    row = {
        "from": 1,
        "to": 4,
        "value": 29.2,
        "standard_error": 1.2,
        "interval": [26.8, 31.6],
        "n": 192,
        "missing": [3],
    }
    none = absent("no round of this window has an estimate")
    empty = {
        "from": 5,
        "to": 8,
        "value": none,
        "standard_error": none,
        "interval": none,
        "n": 0,
        "missing": [5, 6, 7, 8],
    }
    return numeric() | {
        "mode": "rehearsal" if truth else "release",
        "shuffler": "rase",
        "randomizer": {
            "name": "budget_laplace",
            "epsilon": 1.0,
            "parameters": {"beta": 0.5, "rho": 0.9},
            "precision": {
                "beta": 0.5,
                "rho": 0.9,
                "values": [3.9, 178.3],
                "achieved": [0.505583880161689, 0.7001214646619088],
                "clamps": True,
                "guaranteed_threshold": 223.97482663402832,
                "published_threshold": 4.504440159490333,
            },
        },
        "local": {"epsilon": 7.0, "delta": 0.0, "source": "basic composition of 7 reports", "caveats": []},
        "order": order("rase", 0.0),
        "rounds": {
            "devices": 65,
            "rounds": count,
            "reports": 448,
            "held_back": 63,
            "absent": count,
            "missing": 0,
            "silent": len(silent),
            "first": 1,
            "last": count,
            "alone": 0,
            "smallest_batch": 8,
            "cap": 7.5,
            "largest_spent": 7.0,
            "devices_at_cap": 60,
            "local_of_a_round": {"epsilon": 1.0, "delta": 0.0, "source": "Dwork et al. (2006), Proposition 1"},
            "central_of_a_round": absent("in some round somebody is shuffled with nobody else"),
            "alpha_of_a_round": 0.0,
            "alpha_of_all_rounds": 0.0,
            "series": series,
        },
        "windows": {"width": 4, "level": 0.95, "rows": [row, empty]},
        "estimates": numeric()["estimates"]
        | {
            "estimator": {
                "name": "rao-blackwell",
                "best": "median",
                "reason": "in the largest round: noise dominates",
            }
        },
    }
