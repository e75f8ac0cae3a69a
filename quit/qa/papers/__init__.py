"""The papers' tables and figures, declared, and a table of a paper beside our results."""
