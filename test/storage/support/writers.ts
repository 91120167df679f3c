// Sixteen writers at once: uploads raw and as forms, overwrites, deletes, moves, copies, buckets that come, are emptied and
// go. Each knows what it must find, because the paths that it changes are its own; a few paths are everybody's.
import { createHash } from 'node:crypto'
import { chanceOf, type Chance } from '#test/simulation/chance.ts'
import type { Answer, AskOptions } from '#test/support/runtime.ts'
import { OwnPaths, SharedPaths, type Files } from './ledger.ts'
import type { Ask } from './scene.ts'

const count = 16
const common = ['docs', 'more'] as const
const objects = '/storage/v1/object'
const binary = { 'content-type': 'application/octet-stream' }

export interface LoadOptions {
  /** Answers after which it is not known whether the change has happened. */
  unsure?: (answer: Answer) => boolean
}

interface Change {
  after: Files
  ask: () => Promise<Answer>
  status: number
}

export class Load {
  /** Answers that no rule allows. */
  readonly wrong: string[] = []
  /** Status → how often. */
  readonly answers = new Map<number, number>()
  readonly #chance: Chance
  readonly #unsure: (answer: Answer) => boolean
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
    return [...this.answers].reduce((sum, [status, times]) => sum + (status < 500 ? times : 0), 0)
  }

  /** The buckets that all writers use. */
  async begin(ask: Ask): Promise<void> {
    for (const name of common) {
      const { status, text } = await ask('POST', '/storage/v1/bucket', { name })
      if (status !== 201) throw new Error(text)
    }
  }

  /** All writers at once, until told to stop or until the runtime is gone. */
  async run(ask: Ask, stopped: () => boolean): Promise<void> {
    await Promise.all(
      this.#own.map(async (_, writer) => {
        while (!stopped()) {
          const going = this.#chance.happens(0.15) ? await this.#writeShared(ask) : await this.#change(ask, writer)
          if (!going) return
        }
      }),
    )
  }

  /** What was told and is not so. From now on it is as it was found. */
  compare(found: Files): string[] {
    const wrong = [...this.#past, ...this.#own].flatMap((own) => own.compare(found))
    return [...wrong, ...this.#shared.compare(found)]
  }

  #fresh(): OwnPaths {
    const name = `w${this.#made++}`
    return new OwnPaths([...common.map((bucket) => `${bucket}/${name}/`), `own-${name}/`])
  }

  /** @returns false when the runtime is gone */
  async #change(ask: Ask, writer: number): Promise<boolean> {
    let own = this.#own[writer] ?? this.#fresh()
    if (own.doubtful) {
      // What became of the last change is looked at in the end, so its paths are left as they are.
      this.#past.push(own)
      own = this.#own[writer] = this.#fresh()
    }
    const change = this.#next(ask, own)
    own.begin(change.after)
    const answer = await answered(change.ask)
    if (answer === undefined) return false
    this.#count(answer)
    if (answer.status === change.status) {
      if (answer.status < 400) own.acknowledged()
      else own.refused()
    } else if (!this.#unsure(answer)) {
      own.refused()
      this.wrong.push(`${answer.status} instead of ${change.status}: ${answer.text}`)
    }
    return true
  }

  async #writeShared(ask: Ask): Promise<boolean> {
    const key = `docs/shared/${this.#chance.below(4)}`
    const body = this.#chance.happens(0.2) ? undefined : this.#body()
    const acknowledged = this.#shared.begin(key, body === undefined ? undefined : sha256(body))
    const answer = await answered(() =>
      body === undefined ? ask('DELETE', `${objects}/${key}`) : ask('POST', `${objects}/${key}`, body, binary),
    )
    if (answer === undefined) return false
    this.#count(answer)
    if (answer.status === 200 || (answer.status === 404 && body === undefined)) acknowledged()
    else if (!this.#unsure(answer)) this.wrong.push(`${answer.status}: ${answer.text}`)
    return true
  }

  #next(ask: Ask, own: OwnPaths): Change {
    const chance = this.#chance
    const [here = '', there = '', bucket = ''] = own.prefixes
    const { files } = own
    const paths = [...files.keys()].filter((key) => key !== bucket)
    const place = `${chance.pick([here, there, ...(files.has(bucket) ? [bucket, bucket] : [])])}f${chance.below(5)} ü`
    const without = (...keys: string[]) => new Map([...files].filter(([key]) => !keys.includes(key)))
    const json = (method: string, path: string, body?: AskOptions['body']) => () =>
      ask(method, `/storage/v1${path}`, body)

    const kind = chance.below(12)
    if (kind >= 5 && paths.length > 0) {
      const path = chance.pick(paths)
      const [from, source] = split(path)
      if (kind === 5)
        return { after: without(path), status: 200, ask: () => ask('DELETE', `${objects}/${encode(path)}`) }
      if (kind === 6) {
        const gone = paths.filter((other) => other.startsWith(`${from}/`)).slice(0, 3)
        return {
          after: without(...gone),
          status: 200,
          ask: json('DELETE', `/object/${from}`, { prefixes: gone.map((key) => split(key)[1]) }),
        }
      }
      if (kind <= 9) {
        const copies = kind > 7
        const [to, destination] = split(place)
        const body = { bucketId: from, sourceKey: source, destinationBucket: to, destinationKey: destination }
        const after = copies ? new Map(files) : without(path)
        after.set(place, files.get(path) ?? '')
        const taken = files.has(place) && (copies || place !== path)
        return {
          after: taken ? files : after,
          status: taken ? 409 : 200,
          ask: json('POST', `/object/${copies ? 'copy' : 'move'}`, body),
        }
      }
    }
    if (kind >= 10) {
      const name = bucket.slice(0, -1)
      if (!files.has(bucket))
        return { after: new Map([...files, [bucket, 'bucket']]), status: 201, ask: json('POST', '/bucket', { name }) }
      const inside = paths.filter((key) => key.startsWith(bucket))
      if (inside.length > 0 && chance.happens(0.7))
        return { after: without(...inside), status: 200, ask: json('POST', `/bucket/${name}/empty`) }
      return inside.length > 0
        ? { after: files, status: 409, ask: json('DELETE', `/bucket/${name}`) }
        : { after: without(bucket), status: 200, ask: json('DELETE', `/bucket/${name}`) }
    }
    const body = this.#body()
    const after = new Map([...files, [place, sha256(body)]])
    const sent = kind < 2 ? form(body) : { body, headers: binary }
    return {
      after,
      status: 200,
      ask: () => ask(chance.pick(['POST', 'PUT']), `${objects}/${encode(place)}`, sent.body, sent.headers),
    }
  }

  /** Most are small, some are empty, and some take longer than others. */
  #body(): Buffer {
    const chance = this.#chance
    const size = chance.happens(0.1) ? 0 : chance.happens(0.1) ? chance.below(600_000) : chance.below(8_000)
    return Buffer.alloc(size, chance.hex(16))
  }

  #count({ status }: Answer): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1)
  }
}

/** Undefined when the connection broke before there was an answer. */
async function answered(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await ask()
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

/** The database could not be asked, or did not get to its answer. */
export function databaseIsAway({ status, text }: Answer): boolean {
  return status === 503 && text.includes('DATABASE_UNAVAILABLE')
}
