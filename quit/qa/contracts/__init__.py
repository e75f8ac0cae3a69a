"""The tables of QA systems: corpora, graphs, benchmarks."""
