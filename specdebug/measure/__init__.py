"""Numbers and honest comparison: no engine, no files, no framework."""
