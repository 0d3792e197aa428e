"""Shufflers, one file each: what reorders a batch and what its order then promises; what a batch says about values is
in `estimate`.
"""
