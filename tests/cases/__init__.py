"""Cases in text files: a stream with its tuples, queries, and their expected answers."""
