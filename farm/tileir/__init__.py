"""Tile IR: read, print and compare what the front ends emit."""
