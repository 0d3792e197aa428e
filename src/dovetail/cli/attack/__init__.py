"""Attacks as verbs: on values, on the link to people, on released files; options and printing, no attack itself."""
