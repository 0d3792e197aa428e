"""Traces of many people: every device protects its own, a shuffler mixes whole traces; what the centre then knows.

A device runs numpy: noise along a whole trace wants matrices, so there is no scalar twin. The shuffler sees released
traces only; it drops names and people and draws a uniform order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.core.display.display import mute
from dovetail.core.display.losses import upward
from dovetail.core.entropy import Entropy
from dovetail.pipeline.trace.protect import ProtectedTrace
from dovetail.shuffle.uniform import Uniform
from dovetail.trace.kernels.kernel import Floats
from dovetail.trace.trace import Trace


@dataclass(frozen=True)
class CentralTraces:
    """What holds for a shuffled collection of protected traces.

    Parameters
    ----------
    people, traces : int
    mu : float
        The worst of all traces, against an adversary who knows which trace is whose.
    radius : float, metres
    crowd : int
        Traces that have the same time stamps as the most conspicuous one.
    alike : int
        Traces that share their time stamps with at least one other.
    caveats : tuple of str
        Of the traces' own guarantees.
    """

    people: int
    traces: int
    mu: float
    radius: float
    crowd: int
    alike: int
    caveats: tuple[str, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """With an honest shuffler what it adds and what it does not, and what remains if it colludes."""
        mu = upward(self.mu)
        return (
            f"the order tells nothing of whose a trace is: by time stamps alone its owner is one of at least "
            f"{self.crowd:,} ({self.alike:,} of {self.traces:,} traces share their time stamps with another one)",
            f"shuffling adds nothing to mu, which stays {mu} within {self.radius:g} m: places that are not secret "
            "may name the owner, and amplification by shuffling wants reports that hide every value",
            f"whose trace is whose is known, and mu {mu} remains",
        )


@mute
@dataclass(frozen=True, eq=False)
class ShuffledTraces:
    """Released traces in a uniform order, without names.

    Parameters
    ----------
    times : list of float array (n,), seconds
    points : list of float array (n, d), metres
    central : CentralTraces
    """

    times: Sequence[Floats]
    points: Sequence[Floats]
    central: CentralTraces


def shuffle_traces(
    traces: Sequence[Trace],
    people: Sequence[str | None],
    released: Sequence[ProtectedTrace],
    *,
    relative: bool,
    rng: Entropy,
) -> ShuffledTraces:
    """Mix whole traces.

    Parameters
    ----------
    traces : list of Trace
        Only their time stamps are read.
    people : list of str or None
        Whose each is; without a name every trace counts as somebody's own.
    released : list of ProtectedTrace
        What the devices sent.
    relative : bool
        Release seconds from the start of each trace instead of its clock, so that starts tell no traces apart.
    rng : Entropy
    """
    times = [trace.times - trace.times[0] if relative else trace.times for trace in traces]
    order = Uniform(len(traces)).permutation(rng)
    crowds = Counter(stamps.tobytes() for stamps in times)
    central = CentralTraces(
        people=len({name if name is not None else i for i, name in enumerate(people)}),
        traces=len(traces),
        mu=max(one.guarantee.mu for one in released),
        radius=released[0].guarantee.radius,
        crowd=min(crowds.values()),
        alike=sum(count for count in crowds.values() if count > 1),
        caveats=tuple(dict.fromkeys(caveat for one in released for caveat in one.guarantee.caveats)),
    )
    places = np.asarray(order).tolist()
    return ShuffledTraces([times[i] for i in places], [released[i].points for i in places], central)
