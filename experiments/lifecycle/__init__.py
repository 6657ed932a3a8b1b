"""Every write that a person or a program makes in the record; takes rows and values, no request.

A file per noun; a write that the rules do not allow raises `Refused` and changes nothing.
"""

from experiments.claims import Beat, beat, claim_run, finish_run, reap_lost, request_cancel
from experiments.lifecycle.events import add_event, edit_event, remove_event
from experiments.lifecycle.findings import reopen_finding, set_finding_aside
from experiments.lifecycle.hypotheses import (
    add_applied_check,
    add_hypothesis,
    edit_hypothesis,
    hand_back,
    link_hypotheses,
    overrule,
    register_prediction,
)
from experiments.lifecycle.investigations import (
    abandon,
    create_investigation,
    edit_investigation,
    obstacles,
    reopen,
    resolve,
)
from experiments.lifecycle.login import make_login_link, owner, spend_login_link
from experiments.lifecycle.runs import (
    RecordedRepeat,
    add_run,
    branch_run,
    edit_run,
    last_run_of,
    plan_for_worker,
    plan_of,
    record_run,
    repeat_run,
    workload_from,
)
from experiments.refusal import ClaimLost, Refused

__all__ = [
    "Beat",
    "ClaimLost",
    "RecordedRepeat",
    "Refused",
    "abandon",
    "add_applied_check",
    "add_event",
    "add_hypothesis",
    "add_run",
    "beat",
    "branch_run",
    "claim_run",
    "create_investigation",
    "edit_event",
    "edit_hypothesis",
    "edit_investigation",
    "edit_run",
    "finish_run",
    "hand_back",
    "last_run_of",
    "link_hypotheses",
    "make_login_link",
    "obstacles",
    "overrule",
    "owner",
    "plan_for_worker",
    "plan_of",
    "reap_lost",
    "record_run",
    "register_prediction",
    "remove_event",
    "reopen",
    "reopen_finding",
    "repeat_run",
    "request_cancel",
    "resolve",
    "set_finding_aside",
    "spend_login_link",
    "workload_from",
]
