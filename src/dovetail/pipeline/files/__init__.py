"""Tables in and out: reading a survey, reports as columns, all files of a report or none; no privacy decision."""
