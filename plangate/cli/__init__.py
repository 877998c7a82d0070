"""The `plangate` command: parse, call the library, print. No decisions live here."""
