"""What all randomizers of vectors have in common: their law, their registry, the checks of vectors."""
