"""The debugger: stops, steps, what can be seen, and time travel."""
