"""The light part of pip: packages of the sandbox's own registry, without importing the rest of pip.

    command             decides who does what: this package, or the real pip
    arguments           reads a command's options
    names               the registry's names, and names that people use instead
    distributions       what packages say about themselves
    requirements        requirements: specifiers, extras, markers
    requirements_files  `-r` and `-c`
    resolution          which packages a list of requirements needs
    environment         where packages are installed, and what is installed
    links               installs and uninstalls by links, all or nothing
    installing          `install` and `uninstall`
    listing             `list`, `freeze`, `show`, `check`
    real_pip            the real pip, which learns about the registry

The registry is /usr/lib/python: one directory per package, part of the read-only image. A package
is installed when site-packages has links to the entries of its directory. Rules: nothing here
imports pip's own modules before it is certain that they are needed, because that takes longer than
all the rest; messages are those of pip.
"""
