"""A table is made once and rendered for the terminal (``terminal``), Markdown (``table``) and HTML (the report's
templates)."""
