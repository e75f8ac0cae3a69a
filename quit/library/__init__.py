"""What ``import quit`` offers, and what the commands call: a job is one function, here."""
