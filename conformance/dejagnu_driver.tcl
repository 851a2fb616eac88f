# Runs one test that is written for DejaGnu, in the sandbox and natively alike.
#
#   jimsh dejagnu_driver.tcl TOOL PROGRAM TEST
#
# The current directory is the tool's testsuite/. Here are those commands of DejaGnu that
# config/unix.exp and the tests use; what they do with a program is their own. Exit status as
# automake has it: 0 if something passed and nothing failed, 77 if nothing was tested.

lassign $argv tool program test

array set counts {pass 0 fail 0 untested 0}
set expect_failure 0

proc count {what text} {
    global counts expect_failure
    incr counts($what)
    set expect_failure 0
    puts "$what: $text"
}

proc pass {text} {
    global expect_failure
    if {$expect_failure} { count fail "unexpectedly passed: $text" } else { count pass $text }
}

proc fail {text} {
    global expect_failure
    if {$expect_failure} { count pass "failed as expected: $text" } else { count fail $text }
}

proc setup_xfail {args} {
    global expect_failure
    set expect_failure 1
}

proc untested {text} { count untested $text }
proc unsupported {text} { count untested $text }
proc unresolved {text} { count fail $text }
proc send_log {text} { puts -nonewline $text }
proc send_user {text} { puts -nonewline $text }
proc warning {text} { puts "warning: $text" }
proc verbose {args} {}
proc transform {name} { return $name }
proc findfile {name args} { return $name }
proc clone_output {text} {}
proc which {name} { if {[file executable $name]} { return $name } else { return 0 } }

# Needs expect, which is more than Tcl.
proc spawn {args} { return -code error "needs expect" }

# Jim's open knows no permissions.
rename open open_file
proc open {name {access r} {permissions 0666}} {
    set file [open_file $name $access]
    if {$permissions != 0666} { exec chmod $permissions $name }
    return $file
}

set verbose 0
set base_dir [pwd]
set FTSFIND $program

if {[catch {
    source config/unix.exp
    source $test
} message]} {
    if {[string match "*needs expect*" $message]} {
        untested $message
    } else {
        fail "error: $message"
    }
}
catch ${tool}_exit

if {$counts(fail)} { exit 1 }
if {!$counts(pass)} {
    puts "skipped test: not tested"
    exit 77
}
