"""The handlers of the routes, one family per file. `routes.py` lists them all."""
