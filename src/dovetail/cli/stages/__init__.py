"""`dovetail randomize`, `shuffle` and `estimate`: one stage on a file; options and printing, no mechanism."""
