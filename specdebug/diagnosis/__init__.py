"""Evidence in, findings out: the faults of a speculative server, named with their evidence."""
