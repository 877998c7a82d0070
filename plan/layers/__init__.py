"""Seven layers of deterministic checks; each check yields findings and never raises for a plan."""
