"""The public Python API. Import its names from `wasmsand`."""
