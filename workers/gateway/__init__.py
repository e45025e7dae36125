"""The relay between boxes, which have no network and no key, and the model API."""
