"""Rules about the run itself: files that cannot be read, and suppression comments."""
