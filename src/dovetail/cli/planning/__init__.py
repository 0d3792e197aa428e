"""`dovetail plan`, `plan-shuffle` and `compare`: what to promise before anything is collected."""
