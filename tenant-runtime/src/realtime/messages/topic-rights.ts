// The rights of a caller on a topic. On a private topic, the policies of the tenant's table `realtime_messages` decide: a row
// that the caller may select lets them receive, a row that they may insert lets them send. The rows are rolled back.
import { isOfStatement, RoundTripError } from '../../database/round-trip-error.ts'
import { sql, type Statement } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'

/** The kinds of messages on a topic, as the column `extension` names them. */
export const extensions = ['broadcast', 'presence'] as const
export type Extension = (typeof extensions)[number]

export interface Rights {
  read: boolean
  write: boolean
}

export type TopicRights = Readonly<Record<Extension, Rights>>

const every: Rights = { read: true, write: true }
/** The rights on a topic that is not private, and those of the service role. */
export const allRights: TopicRights = { broadcast: every, presence: every }
const none: Rights = { read: false, write: false }
const noRights: TopicRights = { broadcast: none, presence: none }

/** The tenant has no table `realtime_messages`, or one without the necessary columns. */
export class NoMessagesTableError extends Error {}

/** The tenant's own policies, triggers or constraints failed with an error, or a value cannot be stored. */
export class RejectedRowError extends Error {}

/** Whether the rights are sufficient to join the topic. */
export function mayJoin({ broadcast, presence }: TopicRights): boolean {
  return broadcast.read || presence.read
}

const service: RlsContext = { role: 'service', reason: 'rights on realtime topics' }

/** The ID of the last row that was inserted for a check. They are negative, so that they differ from those of messages. */
let lastProbe = 0n

/** The setting that policies read as the topic. */
export const topicStatement = (topic: string) => sql("select set_config('realtime.topic', $1, true)", topic)

const probeStatement = (topic: string, wanted: readonly Extension[]): { statement: Statement; ids: bigint[] } => {
  const ids = wanted.map(() => --lastProbe)
  const values = wanted.map((_, at) => `($${2 * at + 2}, $1, $${2 * at + 3}, true)`).join(', ')
  const parameters = wanted.flatMap((extension, at) => [ids[at] ?? 0n, extension])
  return {
    ids,
    statement: sql(
      `insert into realtime_messages (id, topic, extension, private) values ${values}`,
      topic,
      ...parameters,
    ),
  }
}

/**
 * Reads the rights of a caller on a private topic. A caller that may not read has no rights.
 * @param topic the name without `realtime:`
 * @throws NoMessagesTableError, RejectedRowError; RoundTripError, RuntimeError when the database does not respond
 */
export async function readTopicRights(tenant: Tenant, context: RlsContext, topic: string): Promise<TopicRights> {
  if (context.role === 'service') return allRights
  const readable = await readableExtensions(tenant, context, topic)
  if (readable.size === 0) return noRights
  const rights = await Promise.all(
    extensions.map(async (extension) => {
      const write = await isWritable(tenant, context, topic, extension)
      return [extension, { read: readable.has(extension), write }] as const
    }),
  )
  return Object.fromEntries(rights) as TopicRights
}

async function readableExtensions({ database }: Tenant, context: RlsContext, topic: string): Promise<Set<string>> {
  const { statement, ids } = probeStatement(topic, extensions)
  const [, , , readable] = await checkingRow(() =>
    database.runTogether([
      { context: service, statements: [sql('begin'), topicStatement(topic), statement] },
      {
        context,
        statements: [sql('select extension from realtime_messages where id in ($1, $2)', ...ids), sql('rollback')],
      },
    ]),
  )
  return new Set(readable?.rows.map((row) => String(row['extension'])))
}

/**
 * Whether the caller may send messages of a kind on a private topic.
 * @throws NoMessagesTableError, RejectedRowError; RoundTripError, RuntimeError when the database does not respond
 */
export async function isWritable(
  { database }: Tenant,
  context: RlsContext,
  topic: string,
  extension: Extension,
): Promise<boolean> {
  if (context.role === 'service') return true
  const { statement } = probeStatement(topic, [extension])
  try {
    await checkingRow(() => database.run(context, topicStatement(topic), statement, undo))
    return true
  } catch (error) {
    if (isDenied(error)) return false
    if (error instanceof RoundTripError && error.sqlstate === undone) return true
    throw error
  }
}

const insufficientPrivilege = '42501'

/** Whether the policies of the table are the reason of an error. */
export function isDenied(error: unknown): boolean {
  return error instanceof RoundTripError && error.sqlstate === insufficientPrivilege
}

/** The error with which a check undoes its own row. The session stays usable, as after any error of a single transaction. */
const undone = 'TN001'
const undo = sql(`do $$ begin raise sqlstate '${undone}'; end $$`)
/** The table, or one of its columns, does not exist. */
const undefinedObjects = ['42P01', '42703']

/** Runs a statement that needs the table. @throws NoMessagesTableError */
export async function requiringTable<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    if (cause instanceof RoundTripError && undefinedObjects.includes(cause.sqlstate ?? ''))
      throw new NoMessagesTableError('The tenant has no table "realtime_messages".', { cause })
    throw cause
  }
}

/** Runs statements to which the tenant's own SQL may respond with any error. @throws NoMessagesTableError, RejectedRowError */
export async function checkingRow<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await requiringTable(run)
  } catch (cause) {
    if (isOfStatement(cause) && !isDenied(cause) && cause.sqlstate !== undone)
      throw new RejectedRowError(cause.message, { cause })
    throw cause
  }
}
