"""The ways in and out of the shuffler's process: HTTP, MQTT, metrics; no decision about a report or a round."""
