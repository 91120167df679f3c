// The program `postgres-relay` in the environment of a Postgres that runs as a process: it passes bytes between its own input and
// output and Postgres, until one of them closes. Its argument is the login, of which the superuser connects over the socket.
import { connect } from 'node:net'
import { join } from 'node:path'

const [login] = process.argv.slice(2)
const environment = (name: string) => process.env[name] ?? ''
const port = environment('PGPORT')

const server =
  login === 'postgres'
    ? connect(join(environment('PGSOCKETS'), `.s.PGSQL.${port}`))
    : connect(Number(port), environment('PGHOST'))
server.on('error', (error) => {
  process.stderr.write(`postgres-relay: ${error.message}\n`)
  process.exitCode = 1
})
server.on('close', () => process.exit())
// The reader has gone.
process.stdout.on('error', () => process.exit())
process.stdin.pipe(server)
server.pipe(process.stdout)
