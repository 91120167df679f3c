// Connections of node-postgres to the Postgres in a container that no network reaches. A program in the container passes the
// bytes between its own input and output and Postgres.
import { Duplex, PassThrough, Readable } from 'node:stream'
import type { Engine } from '../../engines/index.ts'
import type { HomeLocation } from '../home-location.ts'
import type { SharedLocation } from './shared-server.ts'

const superuser = 'postgres'

/**
 * Copies bytes in both directions until Postgres closes the connection. The superuser can connect only over the socket, and
 * every other login only over TCP. A byte on standard error each minute prevents that the engine closes a silent connection.
 */
const relay = `
use strict; use warnings; use Errno; use Socket;
my ($family, $address) = $ARGV[0] eq '${superuser}'
  ? (PF_UNIX, pack_sockaddr_un('/run/postgresql/.s.PGSQL.5432'))
  : (PF_INET, pack_sockaddr_in(5432, inet_aton('127.0.0.1')));
my $server;
socket($server, $family, SOCK_STREAM, 0) && connect($server, $address) or die "connect: $!";
$SIG{PIPE} = 'IGNORE';
sub copy {
  my ($from, $to) = @_;
  while (1) {
    my $read = sysread($from, my $bytes, 65536);
    next if !defined $read && $!{EINTR};
    return if !$read;
    for (my $done = 0; $done < $read; ) {
      my $written = syswrite($to, $bytes, $read - $done, $done);
      next if !defined $written && $!{EINTR};
      return if !defined $written;
      $done += $written;
    }
  }
}
my $writer = fork();
die "fork: $!" if !defined $writer;
if ($writer == 0) { copy(*STDIN, $server); shutdown($server, 1); exit 0 }
$SIG{ALRM} = sub { syswrite(STDERR, '.'); alarm 60 };
alarm 60;
copy($server, *STDOUT);
kill 'KILL', $writer;
`

/** Returns the command of the relay. A process has one of its own, because its Postgres has another address. */
const relayOf = (engine: Engine): readonly string[] =>
  engine.name === 'process' ? ['/usr/local/bin/postgres-relay'] : ['perl', '-e', relay]

/** A Postgres in containers of a stack. */
interface ContainerPostgres extends Pick<HomeLocation, 'engine' | 'stack' | 'database'> {
  /** Returns the service that accepts writes now. Connections that are open stay with the one before. */
  serviceNow: (signal: AbortSignal) => Promise<string>
}

/** Returns the database of a container as one that the functions of a shared server can use. */
export function containerServer({ postgres, ...location }: HomeLocation): SharedLocation {
  return currentServer({ ...location, serviceNow: () => Promise.resolve(postgres) })
}

/** Returns the same for a database whose container can change. */
export function currentServer(server: ContainerPostgres): SharedLocation {
  return {
    postgresUrl: `postgres://${superuser}@localhost`,
    database: server.database,
    socket: (role, signal) => openSocket(server, role, signal),
  }
}

function openSocket({ engine, stack, serviceNow }: ContainerPostgres, role: string, signal: AbortSignal): Duplex {
  const input = new PassThrough()
  async function* output() {
    yield* engine.execStream(stack, await serviceNow(signal), [...relayOf(engine), role], { input, signal })
  }
  return new ContainerSocket(input, output())
}

/** The two streams of a program as the socket that node-postgres expects. A closed connection ends both directions. */
class ContainerSocket extends Duplex {
  readonly #input: PassThrough
  readonly #output: Readable

  constructor(input: PassThrough, output: AsyncIterable<Uint8Array>) {
    super({ allowHalfOpen: false })
    this.#input = input
    this.#output = Readable.from(output, { objectMode: false })
    this.#output.on('data', (chunk: Uint8Array) => {
      if (!this.push(chunk)) this.#output.pause()
    })
    this.#output.on('end', () => this.push(null))
    this.#output.on('error', (cause) => this.destroy(cause))
  }

  /** The program connects as soon as it runs. */
  connect(): this {
    setImmediate(() => this.emit('connect'))
    return this
  }

  setNoDelay(): this {
    return this
  }

  setKeepAlive(): this {
    return this
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  override _read(): void {
    this.#output.resume()
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    // The writer may free a chunk that counts as written, and the program reads it later.
    if (this.#input.write(Buffer.from(chunk))) done()
    else this.#input.once('drain', done)
  }

  override _final(done: () => void): void {
    this.#input.end(done)
  }

  override _destroy(cause: Error | null, done: (cause: Error | null) => void): void {
    this.#input.destroy()
    this.#output.destroy()
    done(cause)
  }
}
