"""Corpora: documents read from files, and a hybrid first stage over them."""
