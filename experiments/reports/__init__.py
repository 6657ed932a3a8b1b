"""An investigation as a report: rows to a post-mortem, charts, page and PDF."""
