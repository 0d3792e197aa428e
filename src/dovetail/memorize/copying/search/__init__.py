"""Nearest training points: exactly, or for generated points approximately, with measured recall."""
