"""How long tests wait for threads and for other programs."""

PATIENCE = 120.0
"""Seconds for what a busy machine may be slow to do; arbitrary: a test that fails waits so long, and no other one."""
