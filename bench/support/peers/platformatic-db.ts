// Starts Platformatic DB in this process, on one database. `node platformatic-db.ts MODULE CONNECTIONS` with DATABASE_URL
// prints `{"port"}`. MODULE is the path of the package's main file.
import { pathToFileURL } from 'node:url'

interface PlatformaticDb {
  create(root: string, configuration: object): Promise<{ start(options: { listen: boolean }): Promise<string> }>
}

const [module = '', connections] = process.argv.slice(2)
const { create } = (await import(pathToFileURL(module).href)) as PlatformaticDb
const application = await create(import.meta.dirname, {
  server: { hostname: '127.0.0.1', port: 0, logger: { level: 'error' } },
  db: {
    connectionString: process.env['DATABASE_URL'],
    poolSize: Number(connections),
    // Only the REST interface is measured. Inserts of both services leave created_at empty.
    openapi: true,
    graphql: false,
    events: false,
    autoTimestamp: false,
  },
  watch: false,
})
const url = await application.start({ listen: true })
console.log(JSON.stringify({ port: Number(new URL(url).port) }))
process.on('SIGTERM', () => process.exit(0))
