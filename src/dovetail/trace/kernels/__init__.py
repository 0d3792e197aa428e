"""Stationary correlation functions of time, sums and products of them, and their form in files."""
