"""The ledger: the truth about runs and jobs, in one SQL database."""
