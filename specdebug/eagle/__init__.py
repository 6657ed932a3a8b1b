"""What an EAGLE-3 draft is, what its files say, what it costs; never loads weights into a model."""
