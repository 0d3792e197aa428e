"""What a Bayesian adversary can guess: exact vulnerabilities."""
