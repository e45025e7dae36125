"""What the farm knows and decides: jobs, pipeline, Tile IR, translation, patches, evidence."""
