"""The reference engine: a small EAGLE-3 in torch that really runs; not for real models."""
