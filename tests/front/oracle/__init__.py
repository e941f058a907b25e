"""Small modules on which ptxas has given its verdict."""
