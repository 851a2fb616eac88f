"""wasmsand beside other sandboxes that install from a registry.

probes   scripts with the output that real programs give
programs the programs that drive the others, in their own languages
others   how each sandbox is installed, and runs a script

    python -m bench.peers                 install what is needed, run everything, print the tables
    python -m bench.renew --only probes   and put them into docs/comparison.md
"""
