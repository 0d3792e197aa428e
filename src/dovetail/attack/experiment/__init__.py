"""One loop for every attack on values: release, guess, count; the result with chance level and interval."""
