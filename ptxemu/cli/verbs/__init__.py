"""The verbs of the command line, a module each, with a ``click`` command named ``command``."""
