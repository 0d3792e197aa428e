"""A plan for traces, made before any of them is looked at; the noise of a trace under it, and what it promises."""
