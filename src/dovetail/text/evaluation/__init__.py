"""What released embeddings are good for, and what they give away: classifiers and attacks on documents."""
