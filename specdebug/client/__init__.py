"""The command line; light to start, needs no server."""
