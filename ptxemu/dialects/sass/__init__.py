"""SASS: the SURED and RED instructions of sm_50 to sm_62 and what a program needs around them (SPA 5.0 reference)."""
