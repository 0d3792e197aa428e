"""Sentences as vectors: one file for each encoder, all of them public and blind to every other sentence."""
