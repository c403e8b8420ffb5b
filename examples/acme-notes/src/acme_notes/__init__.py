"""Notes in plain text files."""
