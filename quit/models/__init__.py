"""Everything that runs a model stands behind the protocols of :mod:`quit.models.protocols`."""
