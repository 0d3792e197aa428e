"""Sums over histograms of reports and their exact distribution, in floats or fractions; closed sums for equal bins
live in `max_load`.
"""
