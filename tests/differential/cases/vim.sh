# vim as a script's editor.

#: vim scripts
#| needs: vim
#| ignore: stderr
printf 'one\ntwo\nthree\n' > f; vim -es -u NONE -c '%s/two/2/' -c 'wq' f; cat f; vim -es -u NONE +'g/e$/d' +x f; cat f; printf 'b\na\n' > s; vim -es -u NONE -c '%!sort' -c wq s; cat s; vim -es -u NONE -c 'normal ggOtop' -c 'normal Gobottom' -c wq s; cat s; printf 'x\n' | vim -es -u NONE -c '%p' -c 'q!' -; vim -es -u NONE -c 'put =range(1,3)' -c 'w out' -c 'q!'; cat out; vim -es -u NONE -c 'nosuchcommand' -c 'q!' f; echo $?; vim -es -u NONE -c '1,2join' -c 'w! j' -c 'q!' s; cat j; vim --version | head -1 | cut -c1-10; ex -s -u NONE -c '1d' -c x s; cat s; vim -es -u NONE -c 'let x=system("echo hi")' -c 'call setline(1,x)' -c wq n; cat n; printf 'a\tb\n' > t; vim -es -u NONE -c 'set et ts=4' -c retab -c wq t; cat -A t; vim -es -u NONE -c 'cq 3'; echo $?; vim -es -u NONE -c '%s/é/E/' -c wq <(echo é) 2>&1; printf 'é日\n' > u; vim -es -u NONE -c 'set enc=utf-8' -c 'e!' -c '%s/./x/g' -c wq u; cat u
