"""Noise covariances of equal budget: baselines, the published programs, closed optima, and the robust default."""
