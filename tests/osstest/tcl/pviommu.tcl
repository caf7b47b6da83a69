# -*- Tcl -*-
# SPDX-License-Identifier: GPL-2.0-only
# Recipes for sg-run-job, which sources this file.  standalone.py reads the same
# lines, so each is one run-ts.

proc need-hosts/test-pviommu-dom0 {} { return host }
proc run-job/test-pviommu-dom0 {} {
    run-ts blocked =        ts-pviommu-host + host
    run-ts . =              ts-pviommu-dom0-disk + host
    run-ts . =/dom0         ts-pviommu-switch + host dom0
}

proc need-hosts/test-pviommu-p2m {} { return host }
proc run-job/test-pviommu-p2m {} {
    run-ts blocked =        ts-pviommu-host + host
    run-ts . =              ts-pviommu-dom0-disk + host
}

proc need-hosts/test-pviommu-guest {} { return host }
proc run-job/test-pviommu-guest {} {
    run-ts blocked =        ts-pviommu-host + host
    run-ts blocked =        ts-pviommu-guest-install + host
    run-ts . =/strict       ts-pviommu-guest + host strict
    run-ts . =/lazy         ts-pviommu-guest + host lazy
    run-ts . =/p2m-strict   ts-pviommu-guest + host p2m-strict
    run-ts . =/p2m-lazy     ts-pviommu-guest + host p2m-lazy
    run-ts . =/guest        ts-pviommu-switch + host guest
    run-ts . =/strict       ts-pviommu-hostile + host strict
    run-ts . =/lazy         ts-pviommu-hostile + host lazy
    run-ts . =/strict.2     ts-pviommu-guest + host strict
}
