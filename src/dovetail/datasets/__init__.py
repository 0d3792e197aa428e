"""Populations with known truth, and loaders of public data."""
