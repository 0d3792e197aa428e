"""Vulnerabilities and leakage of channels and shuffled reports: how well a Bayesian adversary can guess.

What is guaranteed (epsilon, delta) lives in `account`, real attacks in `attack`.

`vulnerability` is a name of `dovetail` itself; it gives a `Vulnerability`. Here: `exact_vulnerability`, in fractions;
`linkage`, the chance of naming which report is hers, a `Linkage`; and `message_vulnerability`, where each person
sends several messages, a `MessageVulnerability`.
The core of quantitative information flow is in `dovetail.leak.qif`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
