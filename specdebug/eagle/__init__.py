"""What an EAGLE-3 draft is, what its files say and what it costs; never loads weights into a model."""
