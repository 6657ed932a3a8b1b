"""The example investigation: as it was recorded, and replayed on the reference engine."""
