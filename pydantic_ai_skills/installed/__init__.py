"""What installed Python packages bring for agents, found and read without importing any of it."""
