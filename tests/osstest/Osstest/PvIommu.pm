# SPDX-License-Identifier: GPL-2.0-only
# What the ts-pviommu-* scripts share: the work is done by shell scripts in dom0
# (pviommu-steps/), and this brings them there and runs them.
package Osstest::PvIommu;

use strict;
use warnings;

use Osstest;
use Osstest::TestSupport;

BEGIN {
    use Exporter ();
    our @ISA = qw(Exporter);
    our @EXPORT = qw(pviommu_step pviommu_put_tar);
}

our $steps = 'pviommu-steps';
our $remote = '/root/pviommu-steps';

# Host property => what the scripts call it.
our %parameters = ('pviommu-nvme' => 'PVIOMMU_NVME',
                   'pviommu-at-mb' => 'PVIOMMU_AT_MB',
                   'pviommu-bridge' => 'PVIOMMU_BRIDGE',
                   'pviommu-hostile-rid' => 'PVIOMMU_HOSTILE_RID');

# These go through a remote shell, and must not need quotes there.
sub plain ($) {
    my ($word) = @_;
    $word =~ m{^[-+.,:=/\@\w]+$} or die "'$word': not in a step's arguments";
    return $word;
}

# Run a step on the host.  It dies if the step fails; the step's output is in
# the log.
sub pviommu_step ($$$@) {
    my ($ho, $timeout, $script, @args) = @_;
    my @env;
    foreach my $prop (sort keys %parameters) {
        my $val = get_host_property($ho, $prop, undef);
        push @env, "$parameters{$prop}=".plain($val) if defined $val;
    }
    target_cmd_root($ho, "mkdir -p $remote");
    foreach my $file ('lib.sh', 'guest-lib.sh', $script) {
        target_putfile_root($ho, 60, "$steps/$file", "$remote/$file");
    }
    my $cmd = join ' ', @env, 'sh', "$remote/$script", map { plain $_ } @args;
    logm("pviommu: $cmd");
    target_cmd_root($ho, $cmd, $timeout);
}

# Unpack a tar file of the controller's on the host.
sub pviommu_put_tar ($$$) {
    my ($ho, $file, $where) = @_;
    my $path = $file =~ m{^/} ? $file : "$c{Images}/$file";
    my $there = "/root/pviommu.tar.gz";
    target_putfile_root($ho, 600, $path, $there);
    target_cmd_root($ho, "mkdir -p $where && tar -C $where -xzf $there", 300);
}

1;
