"""Strings without a list of candidates: which of them many people hold, as a function, a run and a plan."""
