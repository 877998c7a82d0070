"""The loop on LangGraph: state, wiring, sync door, saver, ownership, questions to people."""
