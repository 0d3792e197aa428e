"""`dovetail plan`, `check`, `plan-shuffle` and `compare`: what to promise before anything is collected."""
