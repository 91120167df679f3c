// Sixteen concurrent writers: raw uploads and forms, overwrites, deletes, moves, copies, and buckets that are created,
// emptied and deleted. Each writer knows what it must find, because it alone changes its paths; all writers share a few
// further paths.
import { createHash } from 'node:crypto'
import { chanceOf, type Chance } from '#test/simulation/chance.ts'
import type { ApiResponse, RequestOptions } from '#test/support/runtime.ts'
import { OwnPaths, SharedPaths, type Files } from './ledger.ts'
import type { Request } from './scene.ts'

const count = 16
const common = ['docs', 'more'] as const
const objects = '/storage/v1/object'
const binary = { 'content-type': 'application/octet-stream' }

export interface LoadOptions {
  /** Returns true for responses that leave it unknown whether the change has happened. */
  unsure?: (response: ApiResponse) => boolean
}

interface Change {
  after: Files
  request: () => Promise<ApiResponse>
  status: number
}

export class Load {
  /** Responses that no rule allows. */
  readonly wrong: string[] = []
  /** Number of responses by status. */
  readonly responses = new Map<number, number>()
  readonly #chance: Chance
  readonly #unsure: (response: ApiResponse) => boolean
  readonly #shared = new SharedPaths()
  readonly #past: OwnPaths[] = []
  readonly #own: OwnPaths[]
  #made = 0

  constructor(seed: number, { unsure = () => false }: LoadOptions = {}) {
    this.#chance = chanceOf(seed)
    this.#unsure = unsure
    this.#own = Array.from({ length: count }, () => this.#fresh())
  }

  get acknowledged(): number {
    return [...this.responses].reduce((sum, [status, times]) => sum + (status < 500 ? times : 0), 0)
  }

  /** Creates the buckets that all writers use. */
  async begin(request: Request): Promise<void> {
    for (const name of common) {
      const { status, text } = await request('POST', '/storage/v1/bucket', { name })
      if (status !== 201) throw new Error(text)
    }
  }

  /** Runs all writers until `stopped` returns true or the runtime has exited. */
  async run(request: Request, stopped: () => boolean): Promise<void> {
    await Promise.all(
      this.#own.map(async (_, writer) => {
        while (!stopped()) {
          const going = this.#chance.happens(0.15)
            ? await this.#writeShared(request)
            : await this.#change(request, writer)
          if (!going) return
        }
      }),
    )
  }

  /**
   * Returns the differences between the acknowledged and the found state. From now on the found state is the expected
   * one.
   */
  compare(found: Files): string[] {
    const wrong = [...this.#past, ...this.#own].flatMap((own) => own.compare(found))
    return [...wrong, ...this.#shared.compare(found)]
  }

  #fresh(): OwnPaths {
    const name = `w${this.#made++}`
    return new OwnPaths([...common.map((bucket) => `${bucket}/${name}/`), `own-${name}/`])
  }

  /** @returns false when the runtime has exited */
  async #change(request: Request, writer: number): Promise<boolean> {
    let own = this.#own[writer] ?? this.#fresh()
    if (own.doubtful) {
      // The outcome of the last change is compared at the end, so its paths are left unchanged.
      this.#past.push(own)
      own = this.#own[writer] = this.#fresh()
    }
    const change = this.#next(request, own)
    own.begin(change.after)
    const response = await result(change.request)
    if (response === undefined) return false
    this.#count(response)
    if (response.status === change.status) {
      if (response.status < 400) own.acknowledged()
      else own.rejected()
    } else if (!this.#unsure(response)) {
      own.rejected()
      this.wrong.push(`${response.status} instead of ${change.status}: ${response.text}`)
    }
    return true
  }

  async #writeShared(request: Request): Promise<boolean> {
    const key = `docs/shared/${this.#chance.below(4)}`
    const body = this.#chance.happens(0.2) ? undefined : this.#body()
    const acknowledged = this.#shared.begin(key, body === undefined ? undefined : sha256(body))
    const response = await result(() =>
      body === undefined ? request('DELETE', `${objects}/${key}`) : request('POST', `${objects}/${key}`, body, binary),
    )
    if (response === undefined) return false
    this.#count(response)
    if (response.status === 200 || (response.status === 404 && body === undefined)) acknowledged()
    else if (!this.#unsure(response)) this.wrong.push(`${response.status}: ${response.text}`)
    return true
  }

  #next(request: Request, own: OwnPaths): Change {
    const chance = this.#chance
    const [here = '', there = '', bucket = ''] = own.prefixes
    const { files } = own
    const paths = [...files.keys()].filter((key) => key !== bucket)
    const location = `${chance.pick([here, there, ...(files.has(bucket) ? [bucket, bucket] : [])])}f${chance.below(5)} ü`
    const without = (...keys: string[]) => new Map([...files].filter(([key]) => !keys.includes(key)))
    const json = (method: string, path: string, body?: RequestOptions['body']) => () =>
      request(method, `/storage/v1${path}`, body)

    const kind = chance.below(12)
    if (kind >= 5 && paths.length > 0) {
      const path = chance.pick(paths)
      const [from, source] = split(path)
      if (kind === 5)
        return { after: without(path), status: 200, request: () => request('DELETE', `${objects}/${encode(path)}`) }
      if (kind === 6) {
        const gone = paths.filter((other) => other.startsWith(`${from}/`)).slice(0, 3)
        return {
          after: without(...gone),
          status: 200,
          request: json('DELETE', `/object/${from}`, { prefixes: gone.map((key) => split(key)[1]) }),
        }
      }
      if (kind <= 9) {
        const copies = kind > 7
        const [to, destination] = split(location)
        const body = { bucketId: from, sourceKey: source, destinationBucket: to, destinationKey: destination }
        const after = copies ? new Map(files) : without(path)
        after.set(location, files.get(path) ?? '')
        const taken = files.has(location) && (copies || location !== path)
        return {
          after: taken ? files : after,
          status: taken ? 409 : 200,
          request: json('POST', `/object/${copies ? 'copy' : 'move'}`, body),
        }
      }
    }
    if (kind >= 10) {
      const name = bucket.slice(0, -1)
      if (!files.has(bucket))
        return {
          after: new Map([...files, [bucket, 'bucket']]),
          status: 201,
          request: json('POST', '/bucket', { name }),
        }
      const inside = paths.filter((key) => key.startsWith(bucket))
      if (inside.length > 0 && chance.happens(0.7))
        return { after: without(...inside), status: 200, request: json('POST', `/bucket/${name}/empty`) }
      return inside.length > 0
        ? { after: files, status: 409, request: json('DELETE', `/bucket/${name}`) }
        : { after: without(bucket), status: 200, request: json('DELETE', `/bucket/${name}`) }
    }
    const body = this.#body()
    const after = new Map([...files, [location, sha256(body)]])
    const sent = kind < 2 ? form(body) : { body, headers: binary }
    return {
      after,
      status: 200,
      request: () => request(chance.pick(['POST', 'PUT']), `${objects}/${encode(location)}`, sent.body, sent.headers),
    }
  }

  /** Returns a body: most are small, some are empty, and some are large enough to take longer. */
  #body(): Buffer {
    const chance = this.#chance
    const size = chance.happens(0.1) ? 0 : chance.happens(0.1) ? chance.below(600_000) : chance.below(8_000)
    return Buffer.alloc(size, chance.hex(16))
  }

  #count({ status }: ApiResponse): void {
    this.responses.set(status, (this.responses.get(status) ?? 0) + 1)
  }
}

/** Returns undefined when the connection broke before there was a response. */
async function result(request: () => Promise<ApiResponse>): Promise<ApiResponse | undefined> {
  try {
    return await request()
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause)) throw cause
    return undefined
  }
}

function split(key: string): [bucket: string, path: string] {
  const slash = key.indexOf('/')
  return [key.slice(0, slash), key.slice(slash + 1)]
}

function encode(key: string): string {
  return key.split('/').map(encodeURIComponent).join('/')
}

export function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function form(body: Buffer): { body: Buffer; headers: Record<string, string> } {
  const head =
    '--edge\r\ncontent-disposition: form-data; name="cacheControl"\r\n\r\n60\r\n' +
    '--edge\r\ncontent-disposition: form-data; name=""; filename="f"\r\ncontent-type: text/plain\r\n\r\n'
  return {
    body: Buffer.concat([Buffer.from(head), body, Buffer.from('\r\n--edge--\r\n')]),
    headers: { 'content-type': 'multipart/form-data; boundary=edge' },
  }
}

/** Returns whether the response reports that the database was unreachable or did not respond in time. */
export function databaseIsAway({ status, text }: ApiResponse): boolean {
  return status === 503 && text.includes('DATABASE_UNAVAILABLE')
}
