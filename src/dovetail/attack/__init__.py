"""Attacks on releases, and their measured success.

Attackers on values: `Likelihood`, which knows the law of the shuffle, and `MajorityVote` (by those whom
`select_voters` finds). Your own is an `Attacker`, or a `dovetail.Attack`, which configurations can name.
`run_attack` simulates releases and attacks them, `attack_released` attacks what was released; both give an
`AttackResult`, beside which `success_bound` puts a `SuccessBound`. Attackers on people: `SubsetSearch`
(`reidentify_subset`, `best_subset_success`, `subset_bound`) and `ForestAttack` (on `Records` of `release_rounds`,
by `reidentify`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
