"""Prompt files, their loader, and the texts that fill them."""
