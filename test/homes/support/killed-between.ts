// Creates a database, and kills itself between the statement that creates it and the one that revokes PUBLIC's privileges:
// `node killed-between.ts URL NAME`.
import pg from 'pg'
import { ensureClosedDatabase } from '#control-plane/platform/closed-databases.ts'

const [url = '', name = ''] = process.argv.slice(2)
const client = new pg.Client({ connectionString: url })
await client.connect()
await ensureClosedDatabase(client, name, () => {
  process.kill(process.pid, 'SIGKILL')
})
