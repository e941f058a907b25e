"""The front ends of the debugger: a terminal, and editors by the Debug Adapter Protocol."""
