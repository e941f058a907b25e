"""The second engine: an interpreter of the checker's IR, lane by lane.

It shares no pass, no mask, no shape and no LLVM with the compiler, only the table of instructions, the elementwise lowerings and
the runtime's functions.  So it is an oracle of all that lies between the checker and machine code.
"""
