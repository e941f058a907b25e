"""What each instruction computes: one file for each opcode, and what the rows of the instruction table say."""
