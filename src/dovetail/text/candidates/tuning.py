"""Public parameters of a utility, chosen by a rehearsal on public documents alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dovetail.text.candidates.candidates import Candidates
from dovetail.text.integer_rows import inner_products
from dovetail.text.selection.exponential import Exponential
from dovetail.text.selection.integer_budget import IntegerBudget
from dovetail.text.utilities.utility import Utility


def best_variant(utility: Utility, budget: IntegerBudget) -> Utility:
    """The variant whose released candidates agree best with the public documents they stand for.

    Agreement is sharing the class, where candidates have labels, and the inner product with the document's own
    candidate otherwise; that candidate itself does not count. Reads nothing private.
    """
    variants = list(utility.variants())
    if len(variants) == 1 or not len(utility.candidates.samples):
        return utility
    return max(variants, key=lambda one: public_agreement(one, budget))


def public_agreement(utility: Utility, budget: IntegerBudget) -> float:
    """Expected agreement of the exponential mechanism's candidate with sampled public documents."""
    candidates, rule = utility.candidates, Exponential()
    total, owners = 0.0, np.unique(candidates.owners)
    for owner in owners:
        sentences = candidates.samples[candidates.owners == owner]
        law = rule.probabilities(budget.levels(utility.scores(sentences), utility.spread), budget)
        law[owner] = 0.0
        total += float(law @ _agreement(candidates, int(owner)) / max(law.sum(), 1e-300))
    return total / len(owners)


def _agreement(candidates: Candidates, owner: int) -> NDArray[np.float64]:
    if candidates.labels is not None:
        return np.array([one == candidates.labels[owner] for one in candidates.labels], dtype=np.float64)
    own = candidates.rows[owner : owner + 1]
    return np.asarray(inner_products(own, candidates.rows)[0], dtype=np.float64)
