"""The law of each mechanism's reports under the privacy blanket, one file per family; summing it over n people lives
in `blanket`.
"""
