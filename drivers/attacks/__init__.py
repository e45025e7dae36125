"""Cheats with their honest twins, put through the real gates: `farm selftest attacks`."""
