"""What the engine does and prints: its flags, rules, logs and answers; no framework, no network, no
process."""
