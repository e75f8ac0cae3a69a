"""Question answering systems that run on a corpus, its graph and a release."""
