"""k-ary randomized response of people with different epsilons, and the numbers that it is bounded by."""
