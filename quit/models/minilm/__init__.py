"""all-MiniLM-L6-v2: the encoder, its layers as torch modules, and how they run over many texts."""
