"""One function per finding code, one module per family; the list of all is in registry.py."""
