"""The stronger-clones and clones bounds for every randomizer with a local guarantee, and the binomial tails they
need; closed forms live in `closed_form`.
"""
