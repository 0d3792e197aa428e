"""Data-copying: are generated points nearer to the training sample than fresh points of the truth are."""
