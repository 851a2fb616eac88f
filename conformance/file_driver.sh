# Runs one test of file's suite as its Makefile does, in the sandbox and natively alike.
#
#   bash file_driver.sh LOG TEST
#
# The current directory is the suite's. TEST.testfile is the data, TEST.result what is to be
# said of it, TEST.flags further options, TEST*.magic rules instead of the usual ones.

log=$1 test=$2
exec >"$log" 2>&1

rules=$(printf '%s:' "$test"*.magic)
[ -e "${rules%%:*}" ] || rules=../magic.mgc:
flags=
[ -e "$test.flags" ] && flags=-$(cat "$test.flags")

TZ=UTC LC_ALL=C.UTF-8 ../file -E -b -m "${rules%:}" $flags "$test.testfile" >result || exit
# A newline at its end is in some of the files, and not in others.
diff -u <(printf '%s\n' "$(cat "$test.result")") result
