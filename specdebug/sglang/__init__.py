"""What the engine does and prints: flags, rules, logs, answers; no framework, network, process."""
