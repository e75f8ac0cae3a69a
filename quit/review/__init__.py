"""Human verification without a server: which answers to review, in what order, and what people's verdicts come to."""
