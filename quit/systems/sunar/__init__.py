"""SUNAR: neighbourhood aware retrieval steered by how uncertain a reader is (Venktesh, Rathee, Anand; papers/000)."""
