"""`make published COLLECTION=path`: how many scripts of published skills start here, and what the others lack."""
