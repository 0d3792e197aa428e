"""Formulas on paper for the central epsilon, each in its own regime."""
