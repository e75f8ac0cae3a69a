"""The stages of the pipeline: section 3 of *Inferential Question Answering*, one module per stage."""
