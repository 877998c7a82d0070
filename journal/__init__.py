"""What happened: runs and leases, the event log, the effect ledger, decisions, artifacts."""
