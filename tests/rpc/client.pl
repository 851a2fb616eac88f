#!/usr/bin/perl
# A client of `wasmsand rpc` with nothing but Perl: starts the server, calls it, prints what it
# says. Usage: client.pl COMMAND... (the server's command line).
use strict;
use warnings;
use IPC::Open2;
use JSON::PP;
use MIME::Base64;

my $json = JSON::PP->new->utf8->canonical;
my $server = open2(my $from, my $to, @ARGV);
my $id = 0;
my @notifications;

sub receive {
    my $line = <$from>;
    die "the server is gone\n" unless defined $line;
    return $json->decode($line);
}

sub call {
    my ($method, %params) = @_;
    print {$to} $json->encode({jsonrpc => '2.0', id => ++$id, method => $method,
                               params => \%params}), "\n";
    $to->flush;
    while (1) {
        my $answer = receive();
        if (!defined $answer->{id}) { push @notifications, $answer; next; }
        die "an answer to $answer->{id}, not to $id\n" unless $answer->{id} == $id;
        return $answer->{error} ? "error $answer->{error}{code}: $answer->{error}{message}"
                                : $answer->{result};
    }
}

sub show { my ($what, $value) = @_; print "$what: ", ref $value ? $json->encode($value) : $value, "\n"; }

show('create', call('create', wasmDir => undef, timeoutMs => 60000));
show('write', call('files.write', path => '/tmp/d/x', data => encode_base64("line one\nline two\n", '')));
my $run = call('run', command => 'tac /tmp/d/x; echo oops >&2; exit 3');
delete $run->{executionTimeMs};
show('run', $run);
show('read', decode_base64(call('files.read', path => '/tmp/d/x')->{data}));
show('list', call('files.list', path => '/tmp/d'));
show('missing', call('files.read', path => '/nowhere'));
show('nonsense', call('nonsense'));
show('set', call('env.set', name => 'WHO', value => "w\x{f6}rld"));
show('get', call('run', command => 'printf %s "$WHO" | wc -c')->{stdout});
call('commands.start', command => 'echo streamed; exit 7', stdin => '', stream => JSON::PP::true);
push @notifications, receive() until @notifications && $notifications[-1]{method} eq 'commands.exit';
show('streamed', join '', map { decode_base64($_->{params}{data}) }
     grep { $_->{method} eq 'commands.output' } @notifications);
show('ended', $notifications[-1]{params}{exitCode});
show('kill', call('kill'));
waitpid $server, 0;
show('status', $? >> 8);
