"""The pages: each view fetches, calls one thing and answers."""
