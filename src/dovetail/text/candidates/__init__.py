"""The public side: candidates, their file, and the parameters that public documents choose."""
