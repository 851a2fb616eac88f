"""What each route does: one family per file. `routes.py` lists them all."""
