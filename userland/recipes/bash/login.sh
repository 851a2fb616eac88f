# Interactive login shells start like other interactive ones.
if [ -n "$PS1" ] && [ -n "$BASH_VERSION" ]; then . /etc/bash.bashrc; fi
