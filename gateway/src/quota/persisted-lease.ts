// Files of the remaining leases or slots, so that a gateway that restarts during an outage of the control plane can
// continue.
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

const Count = Type.Integer({ minimum: 0 })

/** The remaining lease of one tenant. */
export const PersistedLease = Type.Object({
  tenant_id: Type.String(),
  month: Type.String(),
  /** The end of the month in milliseconds since 1970 of the gateway's own clock. */
  ends_at: Type.Number(),
  limit: Count,
  /** The boot that the control plane granted the lease to. */
  owner: Type.String(),
  /**
   * The number that a later boot may admit, and the number that boots after the owner have admitted or may have admitted.
   */
  free: Count,
  spent: Count,
})
export type PersistedLease = Static<typeof PersistedLease>

/** The connection slots of one tenant. */
export const PersistedSlots = Type.Object({ tenant_id: Type.String(), limit: Count, held: Count })
export type PersistedSlots = Static<typeof PersistedSlots>

interface PersistedFileOptions<Persisted> {
  path: string
  /**
   * The machine's boot ID. It changes with a crash of the machine, which can lose the last lines; then the file is ignored.
   */
  machineBoot: string
  read: (line: unknown) => Persisted | undefined
  /** Whether the entry has nothing left to use. */
  isEmpty: (entry: Persisted) => boolean
  onError: (error: Error) => void
}

const Header = Type.Object({ machine_boot: Type.String() })
/** Number of lines below which a file is never rewritten. Above, it is when most of its lines are outdated. */
const minLines = 20_000

type FileOptions = Pick<PersistedFileOptions<never>, 'path' | 'machineBoot' | 'onError'>

export function leaseFile(options: FileOptions): PersistedFile<PersistedLease> {
  return new PersistedFile({
    ...options,
    read: (line) => (Value.Check(PersistedLease, line) ? line : undefined),
    isEmpty: ({ free, spent }) => free === 0 && spent === 0,
  })
}

export function slotFile(options: FileOptions): PersistedFile<PersistedSlots> {
  return new PersistedFile({
    ...options,
    read: (line) => (Value.Check(PersistedSlots, line) ? line : undefined),
    isEmpty: ({ held }) => held === 0,
  })
}

/**
 * A file of entries in which a tenant's last line is valid. It never has more than may be used, whenever the process ends.
 */
export class PersistedFile<Persisted extends { tenant_id: string }> {
  readonly #options: PersistedFileOptions<Persisted>
  #entries = new Map<string, Persisted>()
  #lines = 0
  #isBroken = false

  constructor(options: PersistedFileOptions<Persisted>) {
    this.#options = options
  }

  /**
   * Loads the entries.
   * @returns the valid, non-empty entries before the first unreadable line
   */
  load(isValid: (entry: Persisted) => boolean = () => true): Persisted[] {
    for (const line of this.#read()) {
      if (isValid(line) && !this.#options.isEmpty(line)) this.#entries.set(line.tenant_id, line)
      else this.#entries.delete(line.tenant_id)
    }
    this.#rewrite()
    return [...this.#entries.values()]
  }

  write(entry: Persisted): void {
    if (this.#options.isEmpty(entry)) this.#entries.delete(entry.tenant_id)
    else this.#entries.set(entry.tenant_id, entry)
    if (++this.#lines > Math.max(minLines, 2 * this.#entries.size)) this.#rewrite()
    else this.#try(() => appendFileSync(this.#options.path, `${JSON.stringify(entry)}\n`))
  }

  get #name(): string {
    return basename(this.#options.path)
  }

  #read(): Persisted[] {
    let text: string
    try {
      text = readFileSync(this.#options.path, 'utf8')
    } catch {
      return []
    }
    const [first = '', ...lines] = text.split('\n')
    const header = parseJson(first)
    if (!Value.Check(Header, header) || header.machine_boot !== this.#options.machineBoot) return []
    // An incomplete line was written before the admission that it would have preceded.
    return lines.slice(0, -1).flatMap((line) => this.#options.read(parseJson(line)) ?? [])
  }

  #rewrite(): void {
    const { path, machineBoot } = this.#options
    const lines = [{ machine_boot: machineBoot }, ...this.#entries.values()].map((line) => `${JSON.stringify(line)}\n`)
    this.#lines = 0
    this.#try(() => {
      writeFileSync(`${path}.new`, lines.join(''), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    })
  }

  /** Removes a file that cannot be written, because it would have more than may still be used. */
  #try(work: () => void): void {
    try {
      work()
      if (this.#isBroken) this.#options.onError(new Error(`The file ${this.#name} is stored again.`))
      this.#isBroken = false
    } catch (cause) {
      if (!this.#isBroken) this.#options.onError(new Error(`The file ${this.#name} could not be stored.`, { cause }))
      this.#isBroken = true
      this.#lines = Infinity
      rmSync(this.#options.path, { force: true })
    }
  }
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
