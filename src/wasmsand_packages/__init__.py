"""Python packages for wasmsand's sandboxes: an interpreter that has their native code.

Owns nothing but the directory `_image`, which `make packages` builds and a wheel carries.
`wasmsand` finds it and adds it to the file system that every sandbox starts from.
"""
