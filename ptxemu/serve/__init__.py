"""The compile server: a child process that compiles for programs that have no Python in them.

``python -m ptxemu.serve FD`` answers the requests that come over a socket, until its other end is closed. What it makes lies
in the disk cache, where the program finds it.
"""
