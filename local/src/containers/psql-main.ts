// The program `psql` in the environment of a Postgres that runs as a process. The packages of Postgres that npm has do not
// contain Postgres' own. It knows the options that the control plane uses: SQL comes from standard input, each row is a line of
// values that `|` separates, and the program ends at the first error.
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import pg from 'pg'

const failed = 3
const environment = (name: string) => process.env[name] ?? ''

const { values } = parseArgs({
  options: {
    'no-psqlrc': { type: 'boolean', short: 'X' },
    quiet: { type: 'boolean', short: 'q' },
    'no-align': { type: 'boolean', short: 'A' },
    'tuples-only': { type: 'boolean', short: 't' },
    'single-transaction': { type: 'boolean', short: '1' },
    variable: { type: 'string', short: 'v', multiple: true },
    username: { type: 'string', short: 'U' },
    dbname: { type: 'string', short: 'd' },
    host: { type: 'string', short: 'h' },
    file: { type: 'string', short: 'f' },
  },
})
const isTerse = values.variable?.includes('VERBOSITY=sqlstate') === true

const client = new pg.Client({
  // Without a host, the superuser connects over the socket.
  host: values.host === undefined ? environment('PGSOCKETS') : environment('PGHOST'),
  port: Number(environment('PGPORT')),
  user: values.username ?? 'postgres',
  password: environment('PGPASSWORD'),
  database: values.dbname ?? values.username ?? 'postgres',
  connectionTimeoutMillis: 10_000,
  types: { getTypeParser: () => (value: string) => value },
})
client.on('error', () => undefined)

try {
  const sql = await text(process.stdin)
  await client.connect()
  if (values['single-transaction'] === true) await client.query('begin')
  const found = (await client.query({ text: sql, rowMode: 'array' })) as pg.QueryArrayResult | pg.QueryArrayResult[]
  if (values['single-transaction'] === true) await client.query('commit')
  const rows = (Array.isArray(found) ? found : [found]).flatMap((result) => result.rows as (string | null)[][])
  process.stdout.write(rows.map((row) => `${row.map((value) => value ?? '').join('|')}\n`).join(''))
} catch (error) {
  process.exitCode = failed
  const message = error instanceof Error ? error.message : String(error)
  const code = error instanceof pg.DatabaseError ? (error.code ?? '') : ''
  process.stderr.write(`psql: ERROR:  ${isTerse && code !== '' ? code : `${code} ${message}`}\n`)
} finally {
  await client.end().catch(() => undefined)
}
