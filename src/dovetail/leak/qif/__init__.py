"""Quantitative information flow for any channel matrix (priors, gains, leakage, capacity, refinement); fast sums for
large n live beside it.
"""
