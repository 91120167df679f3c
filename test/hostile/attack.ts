// The form of an attack. Each file in attacks/ describes some.
import type { Target } from './support/target.ts'
import type { Attacker, Tenant } from './support/tenants.ts'

/** The party that carries out an attack: a client without credentials, or a tenant by its kind of access. */
export type AttackerKind = 'anonymous' | 'service key' | 'SQL' | 'deployer'

export interface Attack {
  /** The attacker's action, for the table in docs/security.md. */
  name: string
  attacker: AttackerKind
  /** The limit that protects others, for the same table. */
  bound: string
  /** Matches the outcome that the attacker must see. */
  sees: RegExp
  /** The targets for which the attack makes sense. By default, these are all except tenants with their own Postgres. */
  targets?: readonly Target[]
  /** The targets that small runs attack, by default only `npm start`. Full runs attack all. */
  smallRuns?: readonly Target[]
  /** Whether the probe also creates and deletes tenants meanwhile. */
  createsTenants?: boolean
  /**
   * Carries out the attack until `scene.isOver()` or until it has failed.
   * @returns what the attacker saw, such as a status with a code, or an SQLSTATE with its message
   */
  run(scene: Scene): Promise<string>
}

/** The means of an attack. */
export interface Scene {
  /** A tenant of the attacker, made for this attack. */
  attacker: Attacker
  /** The tenant that must not notice anything. */
  neighbour: Tenant
  /** Local address from which the attacker sends. */
  address: string
  /** Returns one of 250 addresses of the attacker. */
  addressOf(n: number): string
  /** Duration of an attack without an end of its own. */
  milliseconds: number
  /** Whether that time is over. It begins with the first call. */
  isOver(): boolean
  /**
   * Waits for that time, and then until `describe` returns what the attacker must see, for at most 30 s.
   * @returns the last description
   */
  watch(describe: () => string): Promise<string>
  controlUrl: string
  /** Port of the attacker's `database_url`. */
  sqlPort: number
  /** Ports at which a Postgres or a Postgres proxy of the platform listens for tenants. */
  postgresPorts: readonly number[]
  /** Creates one more tenant of the attacker. */
  anotherTenant(): Promise<Attacker>
  /** Calls the operators' API. */
  control(method: string, path: string, body?: unknown): Promise<{ status: number; text: string }>
  /** Aborts when the attack ends. */
  signal: AbortSignal
  /** Registers what ends a part of the attack; called in reverse order when the attack ends. */
  onEnd(end: () => unknown): void
}
