"""What may be guaranteed after shuffling: theorems turned into numbers that round against us; what an adversary can
guess lives in `leak`, attacks that are run live in `attack`.
"""
