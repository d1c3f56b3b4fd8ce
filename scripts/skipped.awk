#!/usr/bin/awk -f
# Of a log of ctest, what was skipped: `preset test: reason`, a line each. A test says "SKIPPED: why", or skips
# with unittest, which says "skipped 'why'".
/^[0-9]+\/[0-9]+ Test: / { test = $3 }
match($0, /SKIPPED.*/) || match($0, /skipped ['"].*/) {
    reason = substr($0, RSTART + 7)
    gsub(/^[: '"]+|['"]+$/, "", reason)
    print "  " preset " " test ": " reason
}
