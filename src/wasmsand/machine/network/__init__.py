"""The network of a sandbox: the only package that touches the host's network for guests.

Owns the policy (`rules`, `addresses`, `policy`) and the bridge that obeys it. Rules: without a
policy nothing is reachable; modules for the network are imported only when a sandbox may use one.
"""
