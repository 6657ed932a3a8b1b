"""The record: investigations, hypotheses, runs, findings, evidence, and the pages over them."""
