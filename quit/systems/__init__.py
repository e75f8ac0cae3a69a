"""QA systems that run on what the pipeline exports."""
