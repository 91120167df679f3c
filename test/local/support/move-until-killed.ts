// Moves the control database, and kills itself before its n-th query: `node move-until-killed.ts HOMES CONTROL DIRECTORY N`,
// with the superuser's URLs of both servers. Exits with 0 if the move needs fewer queries.
import pg from 'pg'
import { ensureControlDatabase } from '#local/control-database.ts'
import { serviceIdentity } from '#local/process/unprivileged.ts'

const [homes = '', control = '', directory = '', last = ''] = process.argv.slice(2)
const query = Reflect.get(pg.Client.prototype, 'query') as (...args: unknown[]) => unknown
let count = 0
Reflect.set(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
  if (++count === Number(last)) process.kill(process.pid, 'SIGKILL')
  return Reflect.apply(query, this, args)
})
const at = (url: string) => (database: string) => Object.assign(new URL(url), { pathname: `/${database}` }).href
await ensureControlDatabase({
  homes: at(homes),
  control: at(control),
  directory,
  identity: await serviceIdentity(),
  log: { info: () => undefined },
})
