"""What fitting a shuffler takes besides its noise: components and atoms along a reference order, provenance, missing
people, summaries; no shuffler lives here.
"""
