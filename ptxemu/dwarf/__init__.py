"""DWARF that compilers write into PTX (``nvcc -G``): what variables there are, of what types, and where they are kept.

It is untrusted, as all PTX. Reading it makes one pass over the bytes; what is not understood is a :class:`DwarfError`.
"""
