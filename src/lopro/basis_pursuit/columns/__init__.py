"""Working sets of columns: the search, Newton's method on signs, and columns that are expensive to read."""
