"""From one version of a plan to the next: patches, what they move, and what then differs."""
