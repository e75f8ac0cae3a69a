"""How tables and facts are shown."""
