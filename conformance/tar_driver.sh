# Runs one group of an Autotest script, in the sandbox and natively alike.
#
#   bash tar_driver.sh LOG GROUP
#
# The current directory is the suite's, below the top of source and build. atconfig and
# atlocal are what configure makes: where the suite is, and where its programs are.

log=$1 group=$2
top=$(cd .. && pwd)

cat >atconfig <<END
at_testdir=tests
abs_builddir=$top/tests
at_srcdir=.
abs_srcdir=$top/tests
at_top_srcdir=..
abs_top_srcdir=$top
at_top_build_prefix=../
abs_top_builddir=$top
EXEEXT=
AUTOTEST_PATH=tests
SHELL=/bin/bash
END
sed "s|@abs_builddir@|$top/tests|g; s|@abs_top_builddir@|$top|g; s|@abs_top_srcdir@|$top|g" \
	atlocal.in >atlocal

bash ./testsuite "$group" >printed 2>&1
status=$?
cat printed testsuite.log >"$log" 2>/dev/null
if grep -q "^ *$group: .* skipped" printed; then
	exit 77
fi
exit $status
