# Interactive shells read this file before ~/.bashrc. Scripts never do.
if [ -z "$PS1" ]; then return; fi

shopt -s checkwinsize histappend
HISTCONTROL=ignoreboth HISTSIZE=10000 HISTFILESIZE=10000

PS1='\u@\h:\w\$ '
case $TERM in
'' | dumb | unknown | emacs) ;;
*)
    if [ -z "$NO_COLOR" ]; then
        PS1='\[\e[1;32m\]\u@\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ '
        alias ls='ls --color=auto' grep='grep --color=auto' diff='diff --color=auto'
    fi
    ;;
esac
alias ll='ls -alF' la='ls -A' l='ls -CF'
