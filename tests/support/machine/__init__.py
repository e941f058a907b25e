"""A model of machine code: what sequences of NVIDIA's assembler compute, one thread at a time.

It is for ``tests.clients.machine_code``, which compares it with what ptxemu computes. ``text`` reads what nvdisasm
prints, ``thread`` runs it; the other modules have the instructions, in exact arithmetic.
"""
