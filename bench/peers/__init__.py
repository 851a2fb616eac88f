"""wasmsand beside other sandboxes that install from a registry.

probes   scripts with the output that real programs give
others   how each of the others runs a script
report   the tables of docs/comparison.md

    python -m bench.peers            install what is needed, run everything, print the tables
    python -m bench.peers --write    and put them into docs/comparison.md
"""
