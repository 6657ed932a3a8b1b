"""specdebug: find out why speculative decoding is slow, prove it, and write it down."""

__version__ = "0.1.0"
