"""The Celery application: which queues there are and how a task survives a crash."""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "specdebug.settings")

app = Celery("specdebug")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    imports=("workers.tasks", "workers.deliveries"),
    task_default_queue="house",
    # Measuring needs the machine for itself; everything short goes to the other queue.
    task_routes={"workers.tasks.measure": {"queue": "measure"}},
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    # Longer than any run: a lost run is found by its heartbeat, not by the broker.
    broker_transport_options={"visibility_timeout": 12 * 3600},
    worker_hijack_root_logger=False,
    worker_send_task_events=False,
    beat_schedule={
        "reap": {"task": "workers.tasks.reap", "schedule": 5.0, "options": {"expires": 5}},
        "prune": {
            "task": "workers.tasks.prune",
            "schedule": 3600.0,
            "options": {"expires": 3600},
        },
        "deliver": {
            "task": "workers.deliveries.deliver",
            "schedule": 5.0,
            "options": {"expires": 5},
        },
    },
)
