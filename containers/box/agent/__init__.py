"""The agent of a stage: a model that works with tools under limits, saved step by step. Begin at `loop.py`."""
