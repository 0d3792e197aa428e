"""What may be guaranteed after shuffling: theorems turned into numbers that round against us.

What an adversary can guess lives in `leak`; attacks that are run live in `attack`.

`amplify`, `max_epsilon`, `min_people` and `compose` are names of `dovetail` itself. Here: `list_bounds` and
`closed_forms` (every published bound beside ours), `ShuffledRound`, `composed_delta` and `Composition` (rounds of
several kinds), `renyi_curve` and `to_dp_accounting` (other accountants), `posterior_interval` and
`reidentification_bound` (what an order guarantee means), `guess_bound` (what a promise leaves to guess),
`dummies_guarantee`, `sparse_guarantee`, `dummies_delta`, `dummies_epsilon`, `dummies_for_rounds` and
`sparse_for_rounds` (a shuffler that adds the noise),
`Message`, `message_for`, `message_delta` and `message_epsilon` (Gaussian dummies, several symbols of a person),
`user_dummies_for` and `user_dummies_guarantee` (people who add it together), `amplify_mixture` (people with different
epsilons), `memoized_guarantee` (permanent answers to a question that comes again).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
