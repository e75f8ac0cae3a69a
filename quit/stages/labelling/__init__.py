"""What the labelling stages share: passages of a question, readers' answers, people's verdicts."""
