"""SUNAR: neighbourhood aware retrieval steered by how uncertain a reader is (Venktesh, Rathee, Anand, NAACL 2025)."""
