"""Local randomizers of one value, one file each, named after the mechanism: parameters and exact samplers.

The analyst's randomizers take their parameters from these classes and add arrays to them. What all of them share,
and how they are found by name, lives one folder up.
"""
