"""QA systems that run on what is exported, each after its paper; models are reached through the protocols alone."""
