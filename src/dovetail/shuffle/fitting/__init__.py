"""What fitting a shuffler takes besides its noise: components and atoms along a reference order, provenance, missing
people, summaries, saved files; the shufflers themselves are one folder up.
"""
