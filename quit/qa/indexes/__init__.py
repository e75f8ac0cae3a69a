"""What systems read: a built corpus, encoders by name, indexes of first stages, exact search, scorers."""
