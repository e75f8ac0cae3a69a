"""QA systems on releases and corpora, each after its paper; the construction knows nothing of them."""
