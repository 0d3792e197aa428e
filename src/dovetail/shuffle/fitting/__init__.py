"""Parts of fitted shufflers besides their noise: components and atoms along a reference order, provenance, missing
people, summaries, saved files; the shufflers themselves are one folder up.
"""
