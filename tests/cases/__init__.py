"""Cases in text files: a stream with its tuples, queries, and the answers that they must give."""
