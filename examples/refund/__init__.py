"""Refunds: check the case, ask the customer, pay once, prove it."""
