"""The stage programs of the conversion, one module a stage, and what they share."""
