"""The public names of `dovetail.attack`, once, with their home."""

from .experiment.run_attack import AttackResult as AttackResult
from .experiment.run_attack import (
    Attacker as Attacker,
    attack_released as attack_released,
    run_attack as run_attack,
)
from .experiment.success_bound import SuccessBound as SuccessBound, success_bound as success_bound
from .experiment.voter_selection import select_voters as select_voters
from .majority import MajorityVote as MajorityVote
from .experiment.reidentify import reidentify as reidentify
from .experiment.reidentify import ForestAttack as ForestAttack
from .experiment.reidentify import Records as Records, release_rounds as release_rounds
from .experiment.subset_search import (
    SubsetSearch as SubsetSearch,
    best_subset_success as best_subset_success,
    reidentify_subset as reidentify_subset,
    subset_bound as subset_bound,
)
from .likelihood import Likelihood as Likelihood

__all__: list[str]
