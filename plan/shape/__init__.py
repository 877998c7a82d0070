"""Types of JSON data: each schema compiled once, for references, arguments and conditions."""
