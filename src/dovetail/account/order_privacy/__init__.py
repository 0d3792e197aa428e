"""What order privacy alpha implies (posterior odds, re-identification, other groups, composition, preservation of
subsets); the shufflers that guarantee it live in `shuffle`.
"""
