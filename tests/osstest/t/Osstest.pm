# SPDX-License-Identifier: GPL-2.0-only
# For tests only, in place of osstest's module of this name: the configuration.
package Osstest;

use strict;
use warnings;

BEGIN {
    use Exporter ();
    our @ISA = qw(Exporter);
    our @EXPORT = qw(%c);
}

our %c = (Images => $ENV{FAKE_IMAGES});

1;
