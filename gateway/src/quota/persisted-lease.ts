// What is left of the leases, or of the slots, on disk: a gateway that is started anew while the control plane is away goes on
// with it.
import { appendFileSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename } from 'node:path'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'

const Count = Type.Integer({ minimum: 0 })

/** Of one tenant. */
export const PersistedLease = Type.Object({
  tenant_id: Type.String(),
  month: Type.String(),
  /** End of the month, milliseconds since 1970 of the gateway's own clock. */
  ends_at: Type.Number(),
  limit: Count,
  /** The incarnation that the control plane has granted it to. */
  owner: Type.String(),
  /** What a later incarnation may let in; and what incarnations after the owner have let in of it, or might have. */
  free: Count,
  spent: Count,
})
export type PersistedLease = Static<typeof PersistedLease>

/** Slots for connections, of one tenant. */
export const PersistedSlots = Type.Object({ tenant_id: Type.String(), limit: Count, held: Count })
export type PersistedSlots = Static<typeof PersistedSlots>

interface PersistedFileOptions<Persisted> {
  path: string
  /** Another one after a crash of the machine, which may have cost the last lines: then the file is not believed. */
  machineBoot: string
  read: (line: unknown) => Persisted | undefined
  /** Whether it says that nothing is left. */
  isNothing: (left: Persisted) => boolean
  onError: (error: Error) => void
}

const Header = Type.Object({ machine_boot: Type.String() })
const linesAtMost = 20_000

type FileOptions = Pick<PersistedFileOptions<never>, 'path' | 'machineBoot' | 'onError'>

export function leaseFile(options: FileOptions): PersistedFile<PersistedLease> {
  return new PersistedFile({
    ...options,
    read: (line) => (Value.Check(PersistedLease, line) ? line : undefined),
    isNothing: ({ free, spent }) => free === 0 && spent === 0,
  })
}

export function slotFile(options: FileOptions): PersistedFile<PersistedSlots> {
  return new PersistedFile({
    ...options,
    read: (line) => (Value.Check(PersistedSlots, line) ? line : undefined),
    isNothing: ({ held }) => held === 0,
  })
}

/** The last line of a tenant holds. Written so that it never says more than there is, whenever the process dies. */
export class PersistedFile<Persisted extends { tenant_id: string }> {
  readonly #options: PersistedFileOptions<Persisted>
  #left = new Map<string, Persisted>()
  #lines = 0
  #isBroken = false

  constructor(options: PersistedFileOptions<Persisted>) {
    this.#options = options
  }

  /** @returns what was left and holds still; unreadable lines end what is believed */
  load(holds: (left: Persisted) => boolean = () => true): Persisted[] {
    for (const line of this.#read()) {
      if (holds(line) && !this.#options.isNothing(line)) this.#left.set(line.tenant_id, line)
      else this.#left.delete(line.tenant_id)
    }
    this.#rewrite()
    return [...this.#left.values()]
  }

  write(left: Persisted): void {
    if (this.#options.isNothing(left)) this.#left.delete(left.tenant_id)
    else this.#left.set(left.tenant_id, left)
    if (++this.#lines > linesAtMost) this.#rewrite()
    else this.#try(() => appendFileSync(this.#options.path, `${JSON.stringify(left)}\n`))
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
    const header = parsed(first)
    if (!Value.Check(Header, header) || header.machine_boot !== this.#options.machineBoot) return []
    // A line that was not written to its end was followed by no admission.
    return lines.slice(0, -1).flatMap((line) => this.#options.read(parsed(line)) ?? [])
  }

  #rewrite(): void {
    const { path, machineBoot } = this.#options
    const lines = [{ machine_boot: machineBoot }, ...this.#left.values()].map((line) => `${JSON.stringify(line)}\n`)
    this.#lines = 0
    this.#try(() => {
      writeFileSync(`${path}.new`, lines.join(''), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    })
  }

  /** A file that can't be written to would say more than there is: better none. */
  #try(work: () => void): void {
    try {
      work()
      if (this.#isBroken) this.#options.onError(new Error(`${this.#name} is kept on disk again`))
      this.#isBroken = false
    } catch (cause) {
      if (!this.#isBroken) this.#options.onError(new Error(`${this.#name} could not be kept on disk`, { cause }))
      this.#isBroken = true
      this.#lines = Infinity
      rmSync(this.#options.path, { force: true })
    }
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
