"""The function that hydrates data sets: it has nodes restore their contents from S3, and says how far they are."""
