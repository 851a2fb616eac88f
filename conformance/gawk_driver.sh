# Runs one test of gawk's suite, in the sandbox and natively alike.
#
#   bash gawk_driver.sh LOG COMMANDS
#
# The current directory is the suite's. COMMANDS are the ones that the suite's Makefile has
# for the test, each in a shell of its own, as make runs them. A test compares what gawk
# printed, _NAME, with NAME.ok, and removes _NAME if they are equal: what is left has failed.

log=$1 commands=$2
exec >"$log" 2>&1

eval "$commands"

status=0
for left in _*; do
	[ -e "$left" ] || continue
	diff -a -u "${left#_}.ok" "$left"
	status=1
done
exit $status
