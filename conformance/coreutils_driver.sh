# Runs one shell test of coreutils' test suite as `make check VERBOSE=yes` does, in the
# sandbox and natively alike.
#
#   bash coreutils_driver.sh TEST LOG
#
# The current directory is the top of the source and the build tree. What the Makefile
# puts into every test's environment is already there, but for what is done here.

test=$1 log=$2
exec >"$log" 2>&1 9>&2

. ./tests/lang-default
tmp=$TMPDIR
. ./tests/envvar-check
export TMPDIR=$tmp
export CU_TEST_NAME=coreutils,${test//\//-}

# Not by exec: as under make, a test is not the only process.
bash "./$test"
exit $?
