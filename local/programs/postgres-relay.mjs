// Passes bytes between its own input and output and Postgres, until one of them closes. Its arguments are the login, the directory of
// the socket, over which the superuser connects, and the address and port for all others. It has no types, because removing them
// would triple the time of its start, which each session of a move waits for.
import { connect } from 'node:net'
import { join } from 'node:path'

const [login = '', sockets = '', host = '', port = ''] = process.argv.slice(2)

const server = login === 'postgres' ? connect(join(sockets, `.s.PGSQL.${port}`)) : connect(Number(port), host)
server.on('error', (error) => {
  process.stderr.write(`postgres-relay: ${error.message}\n`)
  process.exitCode = 1
})
server.on('close', () => process.exit())
// The reader has gone.
process.stdout.on('error', () => process.exit())
process.stdin.pipe(server)
server.pipe(process.stdout)
