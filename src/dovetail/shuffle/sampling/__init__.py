"""Exact draws of permutations and of noise, and their distributions; what they promise is decided by `sensitivity`
and the shufflers.
"""
