"""Groups of people inside which the order must tell little, and how they are made from public data; the orders they
are laid out in are in `reference_order`.
"""
