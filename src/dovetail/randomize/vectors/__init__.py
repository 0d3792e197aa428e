"""Randomizers of vectors: for means of gradients, profiles and other arrays."""
