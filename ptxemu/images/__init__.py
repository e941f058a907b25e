"""Files and images in which compilers put PTX beside machine code."""
