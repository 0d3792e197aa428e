"""What a finished collection is worth: one file per metric of the privacy report; nothing is released here."""
