"""Published formulas for the central epsilon, each in its own regime; numerical bounds live in `clones` and
`blanket`.
"""
