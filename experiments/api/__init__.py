"""The REST API: fetch, call one thing, answer. A file per resource; docs/api.md describes it."""
