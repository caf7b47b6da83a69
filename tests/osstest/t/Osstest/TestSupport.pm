# SPDX-License-Identifier: GPL-2.0-only
# For tests only, in place of osstest's module of this name: as much of it as the
# steps here use, and with the same ways out, so that ssh and scp of the PATH
# decide what the host is.  Runvars and host properties come in files of lines
# 'NAME=VALUE' that FAKE_RUNVARS and FAKE_PROPERTIES name.
package Osstest::TestSupport;

use strict;
use warnings;

use Osstest;

BEGIN {
    use Exporter ();
    our @ISA = qw(Exporter);
    our @EXPORT = qw(%r $flight $job tsreadconfig need_runvars logm
                     selecthost get_host_property target_cmd_root
                     target_cmd_output_root target_putfile_root
                     target_file_exists);
}

our (%r, $flight, $job);

sub logm ($) { print STDERR "$_[0]\n"; }

sub assignments ($) {
    my ($file) = @_;
    my %h;
    open my $f, '<', $file or die "$file: $!";
    while (<$f>) {
        m/^([^=]+)=(.*)$/ or die "$file: $_ ?";
        $h{$1} = $2;
    }
    return %h;
}

sub tsreadconfig () {
    ($flight, $job) = @ENV{qw(OSSTEST_FLIGHT OSSTEST_JOB)};
    die 'OSSTEST_FLIGHT or OSSTEST_JOB missing' unless $flight && $job;
    %r = assignments($ENV{FAKE_RUNVARS});
}

sub need_runvars {
    my @missing = grep { !defined $r{$_} } @_;
    die "missing runvars @missing" if @missing;
}

sub selecthost ($) {
    my ($ident) = @_;
    die "no specified $ident" unless defined $r{$ident};
    return { Ident => $ident, Name => $r{$ident}, Ip => '192.0.2.1',
             Properties => { assignments($ENV{FAKE_PROPERTIES}) } };
}

# Properties are words-with-dashes in scripts and WordsWithDashes in
# configurations.
sub get_host_property ($$;$) {
    my ($ho, $prop, $defval) = @_;
    my $val = $ho->{Properties}{join '', map { ucfirst } split /-/, $prop};
    return defined $val ? $val : $defval;
}

sub run {
    my ($timeout, @cmd) = @_;
    logm("executing @cmd");
    local $ENV{FAKE_TIMEOUT} = $timeout;
    system @cmd;
    die "status $?" if $?;
}

sub target_cmd_root ($$;$) {
    my ($ho, $cmd, $timeout) = @_;
    run($timeout || 30, 'ssh', '-o', 'BatchMode=yes', "root\@$ho->{Ip}", $cmd);
}

sub target_cmd_output_root ($$;$) {
    my ($ho, $cmd, $timeout) = @_;
    local $ENV{FAKE_TIMEOUT} = $timeout || 30;
    open my $f, '-|', 'ssh', '-o', 'BatchMode=yes', "root\@$ho->{Ip}", $cmd
        or die $!;
    my $out = do { local $/; <$f> };
    close $f or die "status $?";
    chomp $out;
    return $out;
}

sub target_putfile_root ($$$$) {
    my ($ho, $timeout, $from, $to) = @_;
    run($timeout, 'scp', '-o', 'BatchMode=yes', $from, "root\@$ho->{Ip}:$to");
}

sub target_file_exists ($$) {
    my ($ho, $file) = @_;
    return target_cmd_output_root($ho, "if test -e $file; then echo y; fi")
        eq 'y';
}

1;
