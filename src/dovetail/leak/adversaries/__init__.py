"""Additive leakage to each kind of adversary (uninformed, strong, distance gain), by the formula that is in reach;
the sums themselves live in `max_load` and `exact`.
"""
