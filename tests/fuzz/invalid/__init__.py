"""Invalid input, which must be refused by an error that names the argument."""
