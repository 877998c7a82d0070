"""The AML copilot: gather evidence, compare typologies, draft a report that cites it."""
