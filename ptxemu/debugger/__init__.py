"""A debugger of kernels: it watches the interpreter, stops it where it is asked to, and goes back by running again.

Front ends (a terminal, an editor) are told of stops and say how to go on; :mod:`ptxemu.debugger.session` has what they use.
"""
