"""The analyzer: opens shuffled batches, counts them, and answers; it never learns who sent what, or when."""
