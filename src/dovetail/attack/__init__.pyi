"""The public names of `dovetail.attack`, once, with their home."""

from .correlation import Correlation as Correlation, Smoothness as Smoothness, learn_smoothness as learn_smoothness
from .definetti import DeFinetti as DeFinetti
from .experiment.result import Attacked as Attacked, Attacker as Attacker, mount as mount, score as score
from .experiment.voters import voters as voters
from .majority import MajorityVote as MajorityVote
from .reidentify.forest import (
    ForestAttack as ForestAttack,
    Records as Records,
    reidentify as reidentify,
    release_rounds as release_rounds,
)
from .reidentify.subset import (
    SubsetSearch as SubsetSearch,
    best_subset_success as best_subset_success,
    reidentify_subset as reidentify_subset,
    subset_bound as subset_bound,
)

__all__: list[str]
