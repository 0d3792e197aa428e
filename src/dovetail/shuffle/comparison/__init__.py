"""Shufflers and distributions from the literature that protect nobody or too little, for comparison studies; nothing
that is released may use them.
"""
