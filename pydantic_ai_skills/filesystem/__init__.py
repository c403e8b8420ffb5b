"""Opens, writes, locks and locates files. The only code that opens a path inside a skill or a cache."""
