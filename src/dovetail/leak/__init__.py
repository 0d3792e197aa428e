"""What a Bayesian adversary can guess: vulnerabilities and leakage of channels and shuffled reports; what is
guaranteed (epsilon, delta) lives in `account`, real attacks in `attack`.
"""
