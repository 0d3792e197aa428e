"""The summary of a shuffler that is fitted to groups along a reference order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.core.stages import Shuffler
from dovetail.shuffle.fitting.components import PartitionedOrder
from dovetail.shuffle.fitting.fit_provenance import FitProvenance
from dovetail.shuffle.groups.groups import Groups
from dovetail.shuffle.sampling.lehmer_code import Thetas
from dovetail.shuffle.sensitivity.kendall import published_width_bound

_LISTED = 8


def smallest_theta(thetas: Thetas, line: PartitionedOrder) -> float:
    """The smallest theta above 0 of a component; 0 when all are uniform, infinite when nobody moves."""
    moving = thetas[line.sizes > 1]
    return float(moving[moving > 0.0].min(initial=math.inf)) if (moving > 0.0).any() or not moving.size else 0.0


def summarize(
    shuffler: Shuffler,
    line: PartitionedOrder,
    shift: Thetas,
    *,
    thetas: Thetas,
    provenance: FitProvenance,
    width: int,
    sensitivity: int,
) -> dict[str, Any]:
    """Summary of a shuffler along a line whose components move people by `shift` (components,) on average."""
    groups: Groups = shuffler.groups  # type: ignore[attr-defined]
    sizes, alpha, theta_n = line.sizes, shuffler.guarantee.alpha, smallest_theta_n(thetas, line)
    moved = np.minimum(shift, (sizes - 1 / sizes) / 3)
    found = {
        "shuffler": shuffler.name,
        "n": line.n,
        "alpha": alpha,
        "width": width,
        "sensitivity": sensitivity,
        "paper_sensitivity": published_width_bound(width),
        "theta": smallest_theta(thetas, line),
        "theta_n": theta_n,
        "thetas": [float(theta) for theta in thetas[sizes > 1][:_LISTED]],
        "components": int(groups.components().max(initial=-1)) + 1,
        "largest_group": groups.largest,
        "groups": len(groups),
        "ungrouped": int((~groups.grouped).sum()),
        "mean_displacement": float((moved * sizes).sum() / line.n),
        "near_uniform": bool(line.has_several_atoms.any()) and theta_n < 1.0,
    }
    if len(groups) and math.isfinite(alpha):
        kept = retained_share(groups, line, shift)
        found |= {"retained_mean": float(kept.mean()), "retained_min": float(kept.min())}
    if found["near_uniform"]:
        found["warning"] = (
            f"theta * n = {theta_n:.2g} is below 1: the shuffle is nearly uniform and little can be learned "
            "about places. Use smaller groups, a larger alpha, or Uniform, which amplifies differential privacy."
        )
    return found | provenance.summary()


def smallest_theta_n(thetas: Thetas, line: PartitionedOrder) -> float:
    """theta n of the component with the smallest one, components of a single atom apart.

    Nothing but a uniform shuffle is possible inside an atom.
    """
    theta, mixed = smallest_theta(thetas, line), line.has_several_atoms
    if math.isinf(theta) or not mixed.any():
        return theta * line.n
    return float((thetas * line.sizes)[mixed].min())


def retained_share(groups: Groups, line: PartitionedOrder, shift: Thetas) -> NDArray[np.float64]:
    r"""Predicted share (groups,) of a group of l people that keeps a report of the group.

    .. math:: \max\bigl(1 - d / l, \; l / n_c\bigr)

    with d the mean displacement (2 log 2 / theta for Mallows), for a group that stands together.
    """
    part, members = line.component_of(groups), groups.sizes
    with np.errstate(invalid="ignore"):
        return np.asarray(np.maximum(1.0 - shift[part] / members, members / line.sizes[part]))
