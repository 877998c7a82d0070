"""What a plan may touch: authority, and whether a new version has more of it."""
