// Creates a database and is killed between the statement that creates it and the one that takes the rights of PUBLIC:
// node killed-between.ts URL NAME
import pg from 'pg'
import { ensureClosedDatabase } from '#control-plane/platform/closed-databases.ts'

const [url = '', name = ''] = process.argv.slice(2)
const client = new pg.Client({ connectionString: url })
await client.connect()
await ensureClosedDatabase(client, name, () => {
  process.kill(process.pid, 'SIGKILL')
})
