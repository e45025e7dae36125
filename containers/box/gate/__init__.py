"""The gates on a GPU machine: rows, probes and timing. Needs Python 3.11, torch and pytest, nothing else."""
