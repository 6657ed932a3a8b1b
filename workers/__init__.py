"""The GPU side: it runs engines and measures them; only `tasks` knows Django and Celery."""
