"""Input that makes no sense: it has to be refused, by an error that names the argument."""
