"""The words everything else is written in: values without opinions about mechanisms."""
