"""A post-mortem as HTML and as PDF, both from templates/reports/post_mortem.html."""
