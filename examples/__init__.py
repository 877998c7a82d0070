"""Complete agents, each with a world of its own: a real database that remembers."""
