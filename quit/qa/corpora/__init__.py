"""Building corpora and neighbourhood graphs, from releases and from public datasets."""
