# Runs one test of jq's suite, in the sandbox and natively alike.
#
#   bash jq_driver.sh LOG TEST
#
# The current directory is the top of the tree. TEST is FILE/LINE for a program, or a script
# of tests/.

log=$1 test=$2
exec >"$log" 2>&1

case $test in
*.test/*)
	./jq -L tests/modules --run-tests "programs/$test" >output
	cat output
	grep -q '^1 of 1 tests passed (0 malformed' output
	;;
*)
	sh "tests/$test"
	;;
esac
exit $?
