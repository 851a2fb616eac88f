"""Python packages: those of the image, and wheels that the host installs.

    problems     PackageProblem: why a package cannot be installed
    metadata     reads what a package says about itself
    registry     the packages of the image: names, aliases, versions
    resolution   which packages a list of requirements needs
    links        installs and uninstalls a package by links
    offered      trees with packages installed, one for each set, for new sandboxes
    installing   packages of a live sandbox
    wheels       checks and unpacks wheels
    wheel_cache  unpacked wheels on the host's disk, and their shared trees
    index        asks the host's pip which wheels a requirement needs, and downloads them

Rules: "installed" means that site-packages has a link to each top-level entry of the package's
directory below /usr/lib/python, and /usr/local/bin a script for each console entry point. So
nothing is copied, and all sandboxes share a package's files.
"""
