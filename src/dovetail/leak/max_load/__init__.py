"""Expected maximum load of n balls in k bins: equal, unequal, the t fullest, certified; what it says about an
adversary lives in `adversaries`.
"""
