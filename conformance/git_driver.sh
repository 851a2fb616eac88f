# Runs one script of git's test suite, in the sandbox and natively alike.
#
#   bash git_driver.sh RESULTS SCRIPT
#
# The current directory is the suite's. RESULTS gets `tap`, the verdicts as the script tells
# them, and `log`, what the commands of its cases printed.

results=$1 script=$2

bash "./$script" --no-color --verbose-log >"$results/tap" 2>&1 </dev/null
status=$?
cp "test-results/${script%.sh}.out" "$results/log"
exit $status
