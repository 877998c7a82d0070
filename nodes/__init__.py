"""One file a node: what each phase of the loop does. Which node follows which is `graph.wiring`."""
