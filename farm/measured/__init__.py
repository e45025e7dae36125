"""From raw records of a GPU machine to rulings: pure code with the standard library and numpy."""
