"""How a step runs: ready queue, attempt, dataflow, checks, retry, outcome classes, triggers."""
