"""The base of all randomizers of vectors: their law, their registry, the checks of vectors."""
