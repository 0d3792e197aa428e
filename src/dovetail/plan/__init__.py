"""Wishes turned into collections: accuracy, risk and people, solved in any direction."""
