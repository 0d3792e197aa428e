"""Mechanisms of equal accuracy, compared by what each adversary learns."""
