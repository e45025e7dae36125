"""Agent jobs without a model: scenario files and a server that plays them over the real wire protocol."""
