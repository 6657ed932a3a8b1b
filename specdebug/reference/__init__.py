"""The reference engine: a small EAGLE-3 in torch that really runs; not a fast server and not for real models."""
