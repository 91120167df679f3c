// The floor of the REST interface: Fastify and node-postgres with handwritten statements for one table, without schemas,
// grammar or tenants. Under /rls/todos each request is one round trip (context and statement, a single Sync) as the
// tenant's own login, to which its policies apply; under /plain/todos the same statement alone, as the superuser, to whom
// no policy applies.
// `node bare-rest.ts CONNECTIONS` with RLS_URL, PLAIN_URL, TENANT_ID and JWT_SECRET prints `{"port"}`.
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { jwtVerify } from 'jose'
import pg from 'pg'

const { RLS_URL = '', PLAIN_URL = '', TENANT_ID = '', JWT_SECRET = '' } = process.env
const connections = Number(process.argv[2])
/** The time for which the runtime caches a verified token. */
const tokenCacheMilliseconds = 1_000

interface Caller {
  userId: string
  claims: string
  until: number
}

interface Prepared {
  name: string
  text: string
}

interface Part {
  statement: Prepared
  values: (string | null)[]
}

interface Wire {
  stream: { cork(): void; uncork(): void }
  parse(message: { text: string; name: string }): void
  bind(message: { statement: string; values: (string | null)[] }): void
  execute(message: { portal: string }): void
  sync(): void
}

/** Prepared statements in one round trip. Resolves to the first column of the last one's first row. */
class RoundTrip {
  readonly done: Promise<string | null | undefined>
  readonly #parts: readonly Part[]
  readonly #known: Set<string>
  #text: string | null | undefined
  #resolve: (text: string | null | undefined) => void
  #reject: (error: Error) => void

  constructor(parts: readonly Part[], known: Set<string>) {
    const { promise, resolve, reject } = Promise.withResolvers<string | null | undefined>()
    this.#parts = parts
    this.#known = known
    this.done = promise
    this.#resolve = resolve
    this.#reject = reject
  }

  submit(wire: Wire): null {
    wire.stream.cork()
    for (const { statement, values } of this.#parts) {
      if (!this.#known.has(statement.name)) wire.parse(statement)
      this.#known.add(statement.name)
      wire.bind({ statement: statement.name, values })
      wire.execute({ portal: '' })
    }
    wire.sync()
    wire.stream.uncork()
    return null
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.#text = fields[0]
  }

  handleCommandComplete(): void {
    // Only the last statement's row is needed, and each statement has one.
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#text)
  }

  handleError(error: Error): void {
    this.#reject(error)
  }
}

interface Connection {
  client: pg.Client
  known: Set<string>
}

async function openAll(url: string): Promise<Connection[]> {
  return Promise.all(
    Array.from({ length: connections }, async () => {
      const client = new pg.Client({
        connectionString: url,
        options: `-c timezone=UTC -c jit=off -c search_path=${TENANT_ID}`,
      })
      await client.connect()
      return { client, known: new Set<string>() }
    }),
  )
}

/** Runs statements on an idle connection. There are as many as the load has connections, so one is always idle. */
async function run(idle: Connection[], parts: readonly Part[]): Promise<string> {
  const connection = idle.pop()
  if (connection === undefined) throw new Error('No connection is idle')
  try {
    const roundTrip = new RoundTrip(parts, connection.known)
    connection.client.query(roundTrip as unknown as pg.Submittable)
    return (await roundTrip.done) ?? ''
  } finally {
    idle.push(connection)
  }
}

const callers = new Map<string, Caller>()
const secret = Buffer.from(JWT_SECRET)

async function callerOf({ headers: { authorization = '' } }: FastifyRequest): Promise<Caller> {
  const token = authorization.slice('Bearer '.length)
  const known = callers.get(token)
  if (known !== undefined && known.until > Date.now()) return known
  const { payload } = await jwtVerify(token, secret, { algorithms: ['HS256'] })
  const caller = {
    userId: payload.sub ?? '',
    claims: JSON.stringify(payload),
    until: Date.now() + tokenCacheMilliseconds,
  }
  callers.set(token, caller)
  return caller
}

const context: Prepared = {
  name: 'context',
  text: `select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true),
    set_config('app.user_id', $3, true), set_config('request.jwt.claims', $4, true)`,
}
const columns = 'id, owner_id, title, done, rank, created_at'
const record = `json_build_object('id', id, 'owner_id', owner_id, 'title', title,
  'done', done, 'rank', rank, 'created_at', created_at)::text`

const rls = await openAll(RLS_URL)
const plain = await openAll(PLAIN_URL)
const app = Fastify({ keepAliveTimeout: 60_000 })

interface Todo {
  title: string
  done: boolean
  rank: number
}

const statements = {
  get: { name: 'get', text: `select ${record} from todos where id = $1 and owner_id = $2` },
  // Postgres cannot search an index by several policies, one of which does not name the owner, so this condition names it.
  list: {
    name: 'list',
    text: `select coalesce(json_agg(r), '[]')::text
      from (select ${columns} from todos where done = $1 and owner_id = $2 order by rank desc limit $3) r`,
  },
  insert: {
    name: 'insert',
    text: `insert into todos (title, done, rank, owner_id) values ($1, $2, $3, $4) returning ${record}`,
  },
  update: {
    name: 'update',
    text: `update todos set done = $1, rank = $2 where id = $3 and owner_id = $4 returning ${record}`,
  },
}

const modes = {
  '/rls': ({ userId, claims }: Caller, part: Part) =>
    run(rls, [{ statement: context, values: [TENANT_ID, 'authenticated', userId, claims] }, part]),
  '/plain': (_: Caller, part: Part) => run(plain, [part]),
}

for (const [prefix, runPart] of Object.entries(modes)) {
  app.get<{ Params: { id: string } }>(`${prefix}/todos/:id`, async (request, reply) => {
    const caller = await callerOf(request)
    const text = await runPart(caller, { statement: statements.get, values: [request.params.id, caller.userId] })
    return send(reply, text === '' ? 404 : 200, text)
  })
  app.get<{ Querystring: { done: string; limit: string } }>(`${prefix}/todos`, async (request, reply) => {
    const caller = await callerOf(request)
    const { done, limit } = request.query
    return send(reply, 200, await runPart(caller, { statement: statements.list, values: [done, caller.userId, limit] }))
  })
  app.post<{ Body: Todo }>(`${prefix}/todos`, async (request, reply) => {
    const caller = await callerOf(request)
    const { title, done, rank } = request.body
    return send(
      reply,
      201,
      await runPart(caller, {
        statement: statements.insert,
        values: [title, String(done), String(rank), caller.userId],
      }),
    )
  })
  app.patch<{ Params: { id: string }; Body: Todo }>(`${prefix}/todos/:id`, async (request, reply) => {
    const caller = await callerOf(request)
    const { done, rank } = request.body
    const text = await runPart(caller, {
      statement: statements.update,
      values: [String(done), String(rank), request.params.id, caller.userId],
    })
    return send(reply, text === '' ? 404 : 200, text)
  })
}

function send(reply: FastifyReply, status: number, text: string): FastifyReply {
  return reply.status(status).type('application/json; charset=utf-8').send(text)
}

await app.listen({ host: '127.0.0.1', port: 0 })
const address = app.server.address()
console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
process.on('SIGTERM', () => process.exit(0))
