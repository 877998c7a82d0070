"""The one metered model call, and the wire formats that models write."""
