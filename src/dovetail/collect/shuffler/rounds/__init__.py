"""The life of a round: when it opens and closes, the batch rule, the shuffled batch; no thread and no socket."""
