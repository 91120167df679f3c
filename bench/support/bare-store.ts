// Storage's floor: the simplest Node server that stores files durably and finds them again, without tenants, rights or
// rules.
//   PUT /large/NAME   streams to disk with SHA-256, fsync and rename        GET /large/NAME   streams a file
//   PUT /small/NAME   one fsynced write and one INSERT                      GET /small/NAME   one SELECT and a read
// `node bare-store.ts DIRECTORY POSTGRES_URL` prints `{"port"}`.
import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { open, readFile, rename, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'

const [directory = '', postgresUrl = ''] = process.argv.slice(2)
/** The number of connections that a tenant has in the runtime. */
const pool = new pg.Pool({ connectionString: postgresUrl, max: 16 })
await pool.query(
  'create table if not exists bare_files (name text primary key, file text not null, size bigint not null, etag text not null)',
)

async function putLarge(request: IncomingMessage, name: string): Promise<string> {
  const draft = join(directory, randomUUID())
  const hash = createHash('sha256')
  const file = createWriteStream(draft, { highWaterMark: 1024 * 1024, flush: true })
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk)
    if (!file.write(chunk)) await once(file, 'drain')
  }
  const closed = once(file, 'close')
  file.end()
  await closed
  await rename(draft, join(directory, name))
  return hash.digest('hex')
}

async function putSmall(request: IncomingMessage, name: string): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  const bytes = Buffer.concat(chunks)
  const etag = createHash('sha256').update(bytes).digest('hex')
  const file = randomUUID()
  const handle = await open(join(directory, file), 'wx')
  await handle.write(bytes)
  await handle.sync()
  await handle.close()
  await pool.query({
    name: 'put',
    text: 'insert into bare_files (name, file, size, etag) values ($1, $2, $3, $4)',
    values: [name, file, bytes.length, etag],
  })
  return etag
}

async function getLarge(response: ServerResponse, name: string): Promise<void> {
  const file = join(directory, name)
  const { size } = await stat(file)
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size })
  createReadStream(file, { highWaterMark: 256 * 1024 }).pipe(response)
}

async function getSmall(response: ServerResponse, name: string): Promise<void> {
  const { rows } = await pool.query<{ file: string; etag: string }>({
    name: 'get',
    text: 'select file, size, etag from bare_files where name = $1',
    values: [name],
  })
  const bytes = await readFile(join(directory, rows[0]?.file ?? ''))
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': bytes.length,
    etag: rows[0]?.etag,
  })
  response.end(bytes)
}

const server = createServer((request, response) => {
  const [, kind = '', name = ''] = (request.url ?? '').split('/')
  const put = kind === 'large' ? putLarge : putSmall
  const get = kind === 'large' ? getLarge : getSmall
  const work =
    request.method === 'PUT'
      ? put(request, name).then((etag) => response.writeHead(200, { 'content-length': etag.length }).end(etag))
      : get(response, name)
  work.catch((error: unknown) => {
    console.error(error)
    response.destroy()
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
process.on('SIGTERM', () => process.exit(0))
