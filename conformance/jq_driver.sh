# Runs one test of jq's suite, in the sandbox and natively alike.
#
#   bash jq_driver.sh LOG TEST
#
# The current directory is the top of the tree. TEST is a file of programs or a script.

log=$1 test=$2
exec >"$log"

case $test in
*.test)
	# Its messages are kept apart: they would come between parts of a line.
	./jq -L tests/modules --run-tests "tests/$test" 2>"$log.errors"
	;;
*)
	sh "tests/$test" 2>&1
	;;
esac
exit $?
