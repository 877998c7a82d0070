"""The plan as a value: frozen all the way down, hashed by content, revised into versions."""
