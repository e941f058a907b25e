"""Methods for the rows that dialects add to those of PTX: a module for each dialect that has such rows."""
