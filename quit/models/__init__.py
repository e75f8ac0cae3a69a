"""Everything that runs a model; the protocols are in :mod:`quit.models.protocols`."""
