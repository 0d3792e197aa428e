"""What the shufflers that are fitted to groups along a line have in common: checks, roundings and summaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.fit_provenance import FitProvenance
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.sampling.lehmer_code import Thetas
from dovetail.shuffle.sensitivity.kendall import published_width_bound

_LISTED = 8


def smallest_theta(rates: Thetas, line: PartitionedOrder) -> float:
    """The smallest rate above 0 of a component; 0 when all are uniform, infinite when nobody moves."""
    moving = rates[line.sizes > 1]
    return float(moving[moving > 0.0].min(initial=math.inf)) if (moving > 0.0).any() or not moving.size else 0.0


def summarize(
    shuffler: Shuffler,
    line: PartitionedOrder,
    shift: Thetas,
    *,
    rates: Thetas,
    provenance: FitProvenance,
    width: int,
    sensitivity: int,
) -> dict[str, Any]:
    r"""Summary of a shuffler along a line whose components move people by `shift` (components,) on average.

    Predicted share of a group of l people that keeps a report of the group, with d the mean displacement:

    .. math:: \max\bigl(1 - d / l, \; l / n_c\bigr)

    (d = 2 log 2 / theta for Mallows), for a group that stands together. theta n is that of the component with the
    smallest one, components of a single atom apart: nothing but a uniform shuffle is possible inside an atom.
    """
    groups: Groups = shuffler.groups  # type: ignore[attr-defined]
    alpha = shuffler.guarantee.alpha
    sizes, mixed = line.sizes, line.mixed
    moved = np.minimum(shift, (sizes - 1 / sizes) / 3)
    theta = smallest_theta(rates, line)
    theta_n = float((rates * sizes)[mixed].min(initial=math.inf)) if mixed.any() else theta * line.n
    theta_n = theta if math.isinf(theta) else theta_n
    near_uniform = bool(mixed.any()) and theta_n < 1.0
    several = rates[sizes > 1]
    found = {
        "shuffler": shuffler.name,
        "n": line.n,
        "alpha": alpha,
        "width": width,
        "sensitivity": sensitivity,
        "paper_sensitivity": published_width_bound(width),
        "theta": theta,
        "theta_n": theta_n,
        "thetas": [float(rate) for rate in several[:_LISTED]],
        "components": int(groups.components().max(initial=-1)) + 1,
        "largest_group": groups.largest,
        "groups": len(groups),
        "ungrouped": int((~groups.grouped).sum()),
        "mean_displacement": float((moved * sizes).sum() / line.n),
        "near_uniform": near_uniform,
    }
    if len(groups) and math.isfinite(alpha):
        part, members = line.part_of(groups), groups.sizes
        with np.errstate(invalid="ignore"):
            kept = np.maximum(1.0 - shift[part] / members, members / sizes[part])
        found |= {"retained_mean": float(kept.mean()), "retained_min": float(kept.min())}
    if near_uniform:
        found["warning"] = (
            f"theta * n = {theta_n:.2g} is below 1: the shuffle is nearly uniform and little can be learned "
            "about places. Use smaller groups, a larger alpha, or Uniform, which amplifies differential privacy."
        )
    return found | provenance.summary()
